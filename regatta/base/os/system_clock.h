// os/system_clock.h: the clock that machines agree on (NTP, PTP); it may step.
#pragma once

#include <cstdint>

#include "regatta/base/core/units.h"

namespace regatta::os {

// CLOCK_REALTIME, since 1970.
Seconds system_now();
std::int64_t system_ns();

}  // namespace regatta::os
