// cli/internal/kept_process.h: a child process that is started again when it has ended: at once,
// and after pauses that double where it ends soon after each start.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <utility>

#include <sys/types.h>

#include "regatta/base/core/result.h"
#include "regatta/base/core/units.h"
#include "regatta/base/os/process.h"

namespace regatta::cli {

// Times are those of os::monotonic_now(). Does not end the process.
class KeptProcess {
 public:
  // `spawn` starts it once.
  explicit KeptProcess(std::function<Result<pid_t>()> spawn) : spawn_(std::move(spawn)) {}

  Status start(Seconds now);
  // How it ended; nothing while it runs.
  const std::optional<os::ExitState>& end(Seconds now);
  // Starts it again if end() said that it ended and its pause is over. Whether it did: one that
  // cannot be started is tried again after a longer pause.
  bool restart(Seconds now);

  pid_t pid() const { return pid_; }
  std::size_t restarts() const { return restarts_; }
  // How often it ended soon after its start, one after the other.
  int quick_ends() const { return quick_ends_; }
  // When restart() has something to do.
  Seconds due() const { return due_; }

 private:
  void plan_restart(Seconds now);

  std::function<Result<pid_t>()> spawn_;
  pid_t pid_ = -1;
  std::optional<os::ExitState> end_;
  Seconds started_;
  Seconds due_;
  int quick_ends_ = 0;
  std::size_t restarts_ = 0;
};

}  // namespace regatta::cli
