// os/clock.h: the clock of durations and timelines.
#pragma once

#include "regatta/core/units.h"

namespace regatta::os {

// CLOCK_MONOTONIC: never steps, and has one origin for all processes of a machine, so times of
// several ranks in the lab can be laid side by side.
Seconds monotonic_now();

// Sleeps at least `time`, through signals; returns at once when it is not positive.
void sleep_for(Seconds time);

}  // namespace regatta::os
