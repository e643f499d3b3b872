// comm/internal/shm/helper.h: the thread that goes on with a rank's collectives inside the server
// while nobody waits for them.
#pragma once

#include <atomic>
#include <functional>
#include <thread>

#include "regatta/base/core/result.h"
#include "regatta/base/os/unique_fd.h"
#include "regatta/runtime/comm/internal/shm/bell.h"
#include "regatta/runtime/comm/internal/shm/group.h"

namespace regatta::comm {

class Helper final : public HelperCall {
 public:
  // What the groups of the rank did with one call of help(): the most eager answer of them.
  using Round = std::function<ShmGroup::Help()>;
  using Ready = std::function<bool()>;

  // Starts the thread, in the control group of the calling thread. `own`: the rank's shelf.
  Status start(ShelfHeader& own, const Patience& patience, Round round, Ready is_ready);
  Helper() = default;
  Helper(const Helper&) = delete;
  Helper& operator=(const Helper&) = delete;
  ~Helper() override;

  void call(Seconds delay) override;

 private:
  void run(ShelfHeader& own, const Patience& patience, const Round& round, const Ready& is_ready);

  os::UniqueFd timer_;
  std::atomic<bool> must_end_ = false;
  std::thread thread_;
};

}  // namespace regatta::comm
