// comm/internal/shm/helper_thread.h: the thread that drives a rank's collectives inside the server
// while no other thread waits for them.
#pragma once

#include <atomic>
#include <functional>
#include <thread>

#include "regatta/base/core/result.h"
#include "regatta/base/os/unique_fd.h"
#include "regatta/runtime/comm/internal/shm/futex_event.h"
#include "regatta/runtime/comm/internal/shm/shm_group.h"

namespace regatta::comm {

class HelperThread final : public HelperWaker {
 public:
  // Calls make_progress() of every group once; returns kMoved when one moved, else kBlocked when
  // one is blocked.
  using Round = std::function<ShmGroup::Progress()>;
  using Ready = std::function<bool()>;

  // Starts the thread, in the control group of the calling thread. `own`: the rank's shared
  // segment.
  Status start(SharedSegmentHeader& own, const SpinPolicy& policy, Round round, Ready is_ready);
  HelperThread() = default;
  HelperThread(const HelperThread&) = delete;
  HelperThread& operator=(const HelperThread&) = delete;
  ~HelperThread() override;

  void call(Seconds delay) override;

 private:
  void run(SharedSegmentHeader& own, const SpinPolicy& policy, const Round& round,
           const Ready& is_ready);

  os::UniqueFd timer_;
  std::atomic<bool> must_end_ = false;
  std::thread thread_;
};

}  // namespace regatta::comm
