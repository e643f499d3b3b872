// device/discover.h: what this machine is made of: packages, NUMA nodes, caches, devices and NICs
// and where they are plugged in. Source: hwloc (PCIe tree, NUMA), /sys/class/net/*/speed (NICs).
#pragma once

#include <string>
#include <vector>

#include "regatta/base/core/result.h"
#include "regatta/base/core/units.h"
#include "regatta/model/topo/cluster.h"
#include "regatta/model/topo/server_matrix.h"

namespace regatta::device {

struct DiscoverOptions {
  std::string xml_file;           // a machine recorded by `lstopo x.xml`; empty = this machine
  std::string sys_root = "/sys";  // where class/net is
};

struct CacheLevel {
  int level = 1;  // data and unified caches
  Bytes size;     // of one
  int count = 0;
};

struct DiscoveredServer {
  // Complete: usable as a server type. The device is the preset that the PCI id names, else its
  // vendor:device numbers without figures; without accelerators every core is a device of type cpu.
  // The link between devices is the preset's: NVLink is not probed.
  topo::ServerType type;
  std::vector<topo::ServerComponent> parts;  // devices, then NICs, by PCI address
  std::string cpu_model;
  int packages = 0;
  int cores = 0;
  int threads = 0;
  Bytes memory;
  std::vector<CacheLevel> caches;
  std::vector<std::string> notes;  // what could not be found out, one sentence each
};

// Fails with kUnavailable when hwloc cannot read the machine, kInvalidInput when `xml_file` is not
// a recording.
Result<DiscoveredServer> discover_server(const DiscoverOptions& options);

}  // namespace regatta::device
