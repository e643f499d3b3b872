// os/clock.h: the clocks of durations, timelines and work.
#pragma once

#include <cstdint>

#include "regatta/base/core/units.h"

namespace regatta::os {

// CLOCK_MONOTONIC: never steps, and has one origin for all processes of a machine, so times of
// several ranks in the lab can be laid side by side.
Seconds monotonic_now();
std::uint64_t monotonic_ns();

// Processor time that the calling thread has used.
Seconds thread_cpu_time();

// Sleeps at least `time`, through signals; returns at once when it is not positive.
void sleep_for(Seconds time);

}  // namespace regatta::os
