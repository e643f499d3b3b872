// report/internal/fabric_server.h: the inside of a server in the picture of a fabric: NICs in
// columns, rail by rail, each with the devices that it serves.
#pragma once

#include <vector>

#include "regatta/app/report/internal/fabric_layout.h"
#include "regatta/model/topo/cluster.h"

namespace regatta::report {

struct NicColumn {
  int nic = 0;
  int rail = 0;
  int across = 0;  // devices beside each other
  double x = 0;    // left edge, from the left edge of all columns
  double width = 0;
  double nic_x = 0;  // of the NIC, from the same edge
};

// The same columns for every server of a cluster, so that rails are straight.
struct NicColumns {
  std::vector<NicColumn> columns;  // at least one
  double device_size = 0;
  int rows = 1;  // of devices
  double width = 0;

  double devices_height() const { return rows * (device_size + kDeviceSpace) - kDeviceSpace; }
  static constexpr double kDeviceSpace = 3;
};

// Columns wide enough for every server of the cluster. With kCables NICs stand above their devices,
// else in a lane at the right of them, where the line of the rail passes.
NicColumns nic_columns(const topo::Cluster& cluster, FabricDetail detail);

// Adds the devices and NICs of a server of `type`: `corner` is the top left of the devices, `nic_y`
// the height of the NICs.
void place_parts(const NicColumns& plan, const topo::ServerType& type, Point corner, double nic_y,
                 ServerPlace& place);

}  // namespace regatta::report
