#include "regatta/gpu/sharing/internal/daemon/timer_fd.h"

#include <sys/timerfd.h>
#include <unistd.h>

#include "regatta/base/core/result.h"
#include "regatta/base/os/unique_fd.h"

namespace regatta::sharing {

Result<TimerFd> TimerFd::create() {
  os::UniqueFd timer(::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK));
  if (!timer) return os::errno_error("cannot make a timer");
  return TimerFd(std::move(timer));
}

void TimerFd::set(std::uint64_t at_ns) {
  if (at_ns == set_ns_) return;
  set_ns_ = at_ns;
  itimerspec when{};  // zeros: not at all
  if (at_ns != kNever) {
    when.it_value.tv_sec = static_cast<time_t>(at_ns / 1'000'000'000U);
    when.it_value.tv_nsec = static_cast<long>(at_ns % 1'000'000'000U);
  }
  REGATTA_CHECK(::timerfd_settime(timer_.get(), TFD_TIMER_ABSTIME, &when, nullptr) == 0);
}

std::uint64_t TimerFd::acknowledge() {
  std::uint64_t times = 0;
  if (::read(timer_.get(), &times, sizeof times) != sizeof times) return kNever;
  return std::exchange(set_ns_, kNever);
}

}  // namespace regatta::sharing
