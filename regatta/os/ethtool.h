// os/ethtool.h: the counters that a network device's driver keeps (`ethtool -S`).
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "regatta/core/result.h"

namespace regatta::os {

// Name and value, in the driver's order; empty where the driver keeps none. kNotFound where there
// is no such device.
Result<std::vector<std::pair<std::string, std::uint64_t>>> ethtool_counters(
    const std::string& device);

// The devices of this machine by name, the loopback apart.
Result<std::vector<std::string>> network_devices();

// Whether the device has a carrier.
bool has_carrier(const std::string& device);

}  // namespace regatta::os
