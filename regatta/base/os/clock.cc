#include "regatta/base/os/clock.h"

#include <cerrno>
#include <cmath>
#include <ctime>

namespace regatta::os {
namespace {

Seconds read_clock(clockid_t clock) {
  timespec now{};
  ::clock_gettime(clock, &now);
  return {static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec)};
}

}  // namespace

Seconds monotonic_now() {
  return read_clock(CLOCK_MONOTONIC);
}

std::uint64_t monotonic_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000U +
         static_cast<std::uint64_t>(now.tv_nsec);
}

Seconds thread_cpu_time() {
  return read_clock(CLOCK_THREAD_CPUTIME_ID);
}

void sleep_for(Seconds time) {
  if (!(time.value > 0)) return;
  timespec left{};
  left.tv_sec = static_cast<time_t>(time.value);
  left.tv_nsec = static_cast<long>((time.value - std::floor(time.value)) * 1e9);
  while (::clock_nanosleep(CLOCK_MONOTONIC, 0, &left, &left) == EINTR) {
  }
}

}  // namespace regatta::os
