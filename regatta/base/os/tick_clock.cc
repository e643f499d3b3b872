#include <algorithm>

#include "regatta/base/os/clock.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace regatta::os {
namespace {

// Some microseconds at every rate: in a longer time the thread was interrupted.
constexpr std::uint64_t kComparisonTicksMax = 10'000;
// A comparison is exact to some 50 ns, so the rate from two of them that far apart holds for ten
// times as long.
constexpr Seconds kApartMin{100e-6};
constexpr std::uint64_t kGoodForTimes = 10;
constexpr Seconds kGoodForMax{20e-3};

#if defined(__x86_64__)
bool has_counter() {
  unsigned a = 0;
  unsigned b = 0;
  unsigned c = 0;
  unsigned d = 0;
  constexpr unsigned kPowerManagement = 0x80000007;
  constexpr unsigned kInvariantTsc = 1U << 8;
  return __get_cpuid(kPowerManagement, &a, &b, &c, &d) != 0 && (d & kInvariantTsc) != 0;
}
std::uint64_t read_counter() {
  return __builtin_ia32_rdtsc();
}
#elif defined(__aarch64__)
bool has_counter() {
  return true;
}
std::uint64_t read_counter() {
  std::uint64_t ticks = 0;
  asm volatile("mrs %0, cntvct_el0" : "=r"(ticks));
  return ticks;
}
#else
bool has_counter() {
  return false;
}
std::uint64_t read_counter() {
  return 0;
}
#endif

}  // namespace

void TickClock::compare(std::uint64_t before, Seconds now, std::uint64_t after) {
  if (after - before > kComparisonTicksMax) return;
  const std::uint64_t middle = before + (after - before) / 2;
  const double apart_s = now.value - seconds_;
  if (ticks_ == 0 || middle <= ticks_) {
    ticks_ = middle;
    seconds_ = now.value;
    good_for_ = 0;
    return;
  }
  if (apart_s < kApartMin.value) return;
  const std::uint64_t elapsed = middle - ticks_;
  period_s_ = apart_s / static_cast<double>(elapsed);
  good_for_ =
      std::min(kGoodForTimes * elapsed, static_cast<std::uint64_t>(kGoodForMax.value / period_s_));
  ticks_ = middle;
  seconds_ = now.value;
}

Seconds tick_now() {
  static const bool counts = has_counter();
  thread_local TickClock clock;
  if (!counts) return monotonic_now();
  const std::uint64_t ticks = read_counter();
  if (!clock.is_due(ticks)) return clock.at(ticks);
  const Seconds now = monotonic_now();
  clock.compare(ticks, now, read_counter());
  return now;
}

}  // namespace regatta::os
