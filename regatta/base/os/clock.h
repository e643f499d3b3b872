// os/clock.h: the clocks of this machine: monotonic, of the processor, and of the calendar.
#pragma once

#include <cstdint>

#include "regatta/base/core/units.h"

namespace regatta::os {

// The clocks of durations, timelines and work.

// CLOCK_MONOTONIC: never steps, and has one origin for all processes of a machine, so that times of
// several ranks of a lab can be compared.
Seconds monotonic_now();
std::uint64_t monotonic_ns();

// Processor time that the calling thread has used.
Seconds thread_cpu_time();

// Sleeps at least `time`, through signals; returns at once when it is not positive.
void sleep_for(Seconds time);

// CLOCK_MONOTONIC computed from the core's counter, which runs at a constant, unknown rate and is
// compared with the clock now and then. For work that is shorter than a reading of the clock, which
// waits until all loads before it have arrived. Pure.
class TickClock {
 public:
  // Whether `ticks` lies too far from the last comparison, or before it: call compare() first.
  bool is_due(std::uint64_t ticks) const { return ticks - ticks_ >= good_for_; }
  // The time, exact to a microsecond while is_due() is false.
  Seconds at(std::uint64_t ticks) const {
    return {seconds_ + static_cast<double>(ticks - ticks_) * period_s_};
  }
  // The clock showed `now` while the counter went from `before` to `after`. Ignored when that was
  // long, because the thread was interrupted.
  void compare(std::uint64_t before, Seconds now, std::uint64_t after);

 private:
  std::uint64_t ticks_ = 0;
  std::uint64_t good_for_ = 0;
  double seconds_ = 0;
  double period_s_ = 0;
};

// CLOCK_MONOTONIC to a microsecond: times of two threads, and of one thread before and after a
// comparison, may be that much out of order. monotonic_now() on a machine without a counter of
// constant rate.
Seconds tick_now();

// The clock that machines agree on (NTP, PTP); it may step.

// CLOCK_REALTIME, since 1970.
Seconds system_now();
std::int64_t system_ns();

}  // namespace regatta::os
