// os/ethtool.h: the counters that a network device's driver keeps (`ethtool -S`).
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "regatta/base/core/result.h"

namespace regatta::os {

// Name and value, in the driver's order; empty where the driver keeps none. kNotFound where there
// is no such device.
using EthtoolCounters = std::vector<std::pair<std::string, std::uint64_t>>;
Result<EthtoolCounters> ethtool_counters(const std::string& device);

// The same of a device that takes commands (linux/ethtool.h) by `ask`, as the ioctl SIOCETHTOOL
// does: 0, or errno. kUnavailable where its answers do not fit each other.
using EthtoolAsk = std::function<int(void* command)>;
Result<EthtoolCounters> ethtool_counters_by(const std::string& device, const EthtoolAsk& ask);

// The devices of this machine by name, the loopback apart.
Result<std::vector<std::string>> network_devices();

// Whether the device has a carrier.
bool has_carrier(const std::string& device);

}  // namespace regatta::os
