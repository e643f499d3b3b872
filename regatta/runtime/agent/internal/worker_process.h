// agent/internal/worker_process.h: one worker process with its three pipes.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

#include "regatta/base/core/result.h"
#include "regatta/base/core/text.h"
#include "regatta/base/os/unique_fd.h"

namespace regatta::agent::proto {
class Launch;
}  // namespace regatta::agent::proto

namespace regatta::agent {

// A change of a worker's state: an end (status or signal), a pause or a continuation.
struct WorkerStateChange {
  enum class Kind { kExited, kKilled, kPaused, kContinued } kind = Kind::kExited;
  int value = 0;  // exit status, or the signal
};

// Longer lines of a worker's log are cut into lines of this length.
inline constexpr std::size_t kLogLineMax = 65536;

// Not thread safe; no call blocks.
class WorkerProcess {
 public:
  // Starts the program in a process group of its own. kNotFound when the program is missing.
  static Result<WorkerProcess> start(const proto::Launch& launch);

  int run() const { return run_; }
  int rank() const { return rank_; }

  // Queues a line for the worker's standard input.
  void send(const std::string& line);
  // Writes the queued lines, as far as the pipe accepts them.
  void flush();
  bool has_output_queued() const { return !queued_.empty() && input_; }

  int input_fd() const { return input_.get(); }
  int output_fd() const { return output_.get(); }
  int log_fd() const { return log_.get(); }

  // The complete lines that have arrived; with `at_end` also an unfinished last one.
  std::vector<std::string> read_output(bool at_end = false);
  std::vector<std::string> read_log(bool at_end = false);

  // The next change of the process, if any; after an end it is reaped and its group is killed.
  std::optional<WorkerStateChange> next_change();
  void send_signal(int signal) const;

 private:
  WorkerProcess() = default;

  int run_ = 0;
  int rank_ = 0;
  pid_t pid_ = -1;
  os::UniqueFd input_;
  os::UniqueFd output_;
  os::UniqueFd log_;
  std::string queued_;
  LineSplitter output_lines_;
  LineSplitter log_lines_{kLogLineMax};
};

}  // namespace regatta::agent
