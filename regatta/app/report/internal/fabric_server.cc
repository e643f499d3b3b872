#include "regatta/app/report/internal/fabric_server.h"

#include <algorithm>
#include <set>
#include <string>
#include <tuple>
#include <vector>

namespace regatta::report {
namespace {

using topo::ServerType;

constexpr int kDevicesInARow = 4;

// NIC i serves the devices d with d % nic_count == i; without a NIC, all stand in one column.
int devices_of_nic(const ServerType& type, int nic) {
  const int nics = std::max(1, type.nic_count);
  return nic >= nics ? 0 : (type.device_count - nic + nics - 1) / nics;
}

double device_size(FabricDetail detail) {
  switch (detail) {
    case FabricDetail::kCables:
      return 16;
    case FabricDetail::kRails:
      return 12;
    case FabricDetail::kCompact:
    case FabricDetail::kCounts:
      break;
  }
  return 8;
}

double lane_width(FabricDetail detail) {
  switch (detail) {
    case FabricDetail::kCables:
      return 0;
    case FabricDetail::kRails:
      return 18;
    case FabricDetail::kCompact:
    case FabricDetail::kCounts:
      break;
  }
  return 11;
}

// In column `nic` of any server.
int most_devices(const std::vector<const ServerType*>& types, int nic) {
  int most = 0;
  for (const ServerType* type : types)
    most = std::max(most, devices_of_nic(*type, nic));
  return most;
}

std::vector<const ServerType*> used_types(const topo::Cluster& cluster) {
  std::set<std::string> names;
  for (const topo::Server& server : cluster.servers)
    names.insert(server.type);
  std::vector<const ServerType*> types;
  types.reserve(names.size());
  for (const std::string& name : names)
    types.push_back(&cluster.server_types.at(name));
  return types;
}

}  // namespace

NicColumns nic_columns(const topo::Cluster& cluster, FabricDetail detail) {
  const std::vector<const ServerType*> types = used_types(cluster);
  const int rails = std::max(1, cluster.fabric.rails);
  int nics = 1;
  for (const ServerType* type : types)
    nics = std::max(nics, type->nic_count);
  NicColumns plan{.columns = {}, .device_size = device_size(detail)};
  // No column holds more than the first.
  plan.rows = most_devices(types, 0) > kDevicesInARow ? 2 : 1;
  for (int nic = 0; nic < nics; ++nic) {
    const int across = (most_devices(types, nic) + plan.rows - 1) / plan.rows;
    plan.columns.push_back({.nic = nic, .rail = nic % rails, .across = across});
  }
  std::sort(plan.columns.begin(), plan.columns.end(), [](const auto& a, const auto& b) {
    return std::tie(a.rail, a.nic) < std::tie(b.rail, b.nic);
  });
  const double lane = lane_width(detail);
  for (NicColumn& column : plan.columns) {
    const double devices = column.across * (plan.device_size + NicColumns::kDeviceSpace);
    column.x = plan.width;
    column.width = lane > 0 ? devices + lane : std::max(devices, plan.device_size) + 4;
    column.nic_x = column.x + (lane > 0 ? devices + lane / 2 : column.width / 2);
    plan.width += column.width;
  }
  return plan;
}

void place_parts(const NicColumns& plan, const ServerType& type, Point corner, double nic_y,
                 ServerPlace& place) {
  const double pitch = plan.device_size + NicColumns::kDeviceSpace;
  for (const NicColumn& column : plan.columns) {
    const int devices = devices_of_nic(type, column.nic);
    const double left = corner.x + column.x + 2;
    for (int i = 0; i < devices; ++i) {
      const int row = i / column.across;
      place.devices.push_back({left + pitch * (i - row * column.across), corner.y + pitch * row,
                               plan.device_size, plan.device_size});
    }
    if (column.nic < type.nic_count)
      place.nics.push_back(
          {.nic = column.nic, .rail = column.rail, .at = {corner.x + column.nic_x, nic_y}});
  }
}

}  // namespace regatta::report
