// lab/internal/devices.h: gives every emulated device its fixed share of a core.
#pragma once

#include "regatta/base/core/result.h"
#include "regatta/network/lab/internal/blueprint.h"
#include "regatta/network/lab/internal/state.h"

namespace regatta::lab {

// Makes one CPU group per device, "regatta-LAB/SERVER-INDEX", and enters them into `state` (cgroup,
// join_cgroup, devices, cpu_share, fixed_speed). If that is impossible the lab runs without them
// and info.speed_note has the reason. The state is saved before the first group is made.
Status make_devices(const Blueprint& blueprint, LabState& state);

}  // namespace regatta::lab
