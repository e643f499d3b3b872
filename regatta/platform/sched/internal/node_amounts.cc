#include "regatta/platform/sched/internal/node_amounts.h"

#include <bit>
#include <cstddef>

namespace regatta::sched {

ResourceAmounts amounts_of_replica(const ClusterNode& node, const Role& role) {
  ResourceAmounts amounts;
  amounts[Resource::kCompute] = static_cast<long long>(role.devices) * role.device_milli;
  const int memory_mib = role.memory_taken(node.device_memory_mib);
  amounts[Resource::kDeviceMemory] = static_cast<long long>(role.devices) * memory_mib;
  amounts[Resource::kCpu] = role.cpu_milli;
  amounts[Resource::kMemory] = role.memory_mib;
  amounts[Resource::kNic] = role.nic_milli;
  return amounts;
}

ResourceAmounts usable_amounts(const ClusterNode& node) {
  ResourceAmounts amounts;
  const int devices = node.devices - std::popcount(node.failed_devices);
  amounts[Resource::kCompute] = static_cast<long long>(devices) * kDeviceMilli;
  amounts[Resource::kDeviceMemory] = static_cast<long long>(devices) * node.device_memory_mib;
  amounts[Resource::kCpu] = node.cpu_milli;
  amounts[Resource::kMemory] = node.memory_mib;
  amounts[Resource::kNic] = static_cast<long long>(node.nics) * kDeviceMilli;
  return amounts;
}

bool holds(const ResourceAmounts& free, const ResourceAmounts& amounts) {
  for (std::size_t i = 0; i < amounts.of.size(); ++i)
    if (amounts.of[i] > free.of[i]) return false;
  return true;
}

}  // namespace regatta::sched
