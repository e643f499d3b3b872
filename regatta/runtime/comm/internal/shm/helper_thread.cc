#include "regatta/runtime/comm/internal/shm/helper_thread.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include <pthread.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "regatta/base/os/unique_fd.h"

namespace regatta::comm {
namespace {

constexpr Seconds kHelperSleepMax{0.1};

}  // namespace

Status HelperThread::start(SharedSegmentHeader& own, const SpinPolicy& policy, Round round,
                           Ready is_ready) {
  timer_.reset(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC));
  if (!timer_) return os::errno_error("start the helper thread of collectives");
  thread_ = std::thread([this, &own, policy, does = std::move(round), ready = std::move(is_ready)] {
    run(own, policy, does, ready);
  });
  pthread_setname_np(thread_.native_handle(), "regatta-shm");
  return {};
}

HelperThread::~HelperThread() {
  if (!thread_.joinable()) return;
  must_end_.store(true);
  call(Seconds{0});
  thread_.join();
}

void HelperThread::call(Seconds delay) {
  itimerspec time{};
  time.it_value.tv_nsec = std::max(1L, static_cast<long>(delay.value * 1e9));
  timerfd_settime(timer_.get(), 0, &time, nullptr);
}

void HelperThread::run(SharedSegmentHeader& own, const SpinPolicy& policy, const Round& round,
                       const Ready& is_ready) {
  while (!must_end_.load()) {
    std::uint64_t expired = 0;
    if (read(timer_.get(), &expired, sizeof expired) < 0) continue;
    for (auto did = round(); did != ShmGroup::Progress::kIdle && !must_end_.load(); did = round())
      if (did == ShmGroup::Progress::kBlocked)
        wait_for_event(own, policy, kHelperSleepMax, is_ready);
  }
}

}  // namespace regatta::comm
