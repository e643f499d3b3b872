// topo/cluster.h: the cluster as data: device and server types, the servers, the fabric between
// them. Plain values; topo/cluster_yaml.h reads and validates them, topo/graph.h derives nodes,
// links and paths.
#pragma once

#include <compare>
#include <map>
#include <string>
#include <vector>

#include "regatta/base/core/ids.h"
#include "regatta/base/core/result.h"
#include "regatta/base/core/units.h"

namespace regatta::topo {

enum class DeviceKind { kCpu, kGpu };

// Peak rates are those of the data sheet, dense, without sparsity; 0 for an unsupported precision.
struct DeviceType {
  std::string name;  // "a100-sxm4-80g", "cpu"
  DeviceKind kind = DeviceKind::kGpu;
  FlopsPerSecond fp32_peak;
  FlopsPerSecond bf16_peak;
  FlopsPerSecond fp16_peak;
  FlopsPerSecond fp8_peak;
  FlopsPerSecond mxfp8_peak;  // with a scale for each 32 elements
  FlopsPerSecond nvfp4_peak;  // with a scale for each 16
  int processors = 0;         // streaming multiprocessors of a GPU; 0: not known
  Bytes memory;
  BytesPerSecond memory_bandwidth;
  // CPU devices: the share of one core that the device may compute with, 0 < share <= 1; 0 = not
  // given (the lab divides 80 % of the cores it finds among all the devices of the cluster).
  double cpu_share = 0;
  std::string source;  // where the figures are from
};

// The share of a core whose peak rates a device has: 1 for GPUs, and where none is given.
inline double described_share(const DeviceType& device) {
  return device.cpu_share > 0 ? device.cpu_share : 1;
}

enum class IntraKind { kShm, kPcie, kNvlink };

// Between two devices of one server, per direction.
struct IntraLink {
  IntraKind kind = IntraKind::kShm;
  BytesPerSecond bandwidth;
  Seconds latency;
};

// The PCIe switches of a server: devices and NICs are spread evenly over them, in order.
struct PcieTree {
  int switches = 0;                  // 0, or no divisor of both counts: not known
  bool has_cascades = false;         // parts of one switch are several bridges apart: PXB, else PIX
  bool has_one_host_bridge = false;  // in each NUMA node: PHB between its switches, else NODE
};

// Links and switches that join devices of several servers as those of one: a scale-up domain, as of
// a rack of 72 devices. Servers of a type fill one domain after the other.
struct ScaleUp {
  int servers = 1;                    // of a domain; 1: nothing joins servers but their NICs
  BytesPerSecond bandwidth;           // of a device to all others of the domain, one way
  Seconds latency;                    // between devices of two servers
  bool in_network_reduction = false;  // its switches sum and copy what devices send
};

struct ServerType {
  std::string name;
  DeviceType device;
  int device_count = 0;
  IntraLink intra;
  int nic_count = 0;        // NIC i serves the devices d with d % nic_count == i, on rail i % rails
  BytesPerSecond nic_rate;  // per NIC, per direction
  int numa_nodes = 1;       // devices and NICs are spread evenly over them, in order
  PcieTree pcie = {};
  ScaleUp scale_up = {};
  std::string source;
};

// tiers = 0: the servers are not connected (one server); 1: leaf; 2: leaf, spine; 3: and
// super-spine.
struct Fabric {
  int tiers = 0;
  int rails = 1;
  int servers_per_leaf = 0;
  // Parts of equal size that no switch joins; the leaves of rail r are in plane r * planes / rails,
  // spine j of a group in plane j * planes / spines. As many as rails: nothing joins the rails.
  int planes = 1;
  int spines = 0;            // per group; each leaf has uplinks to those of its group and plane,
  int uplink_cables = 1;     // so many to each
  int leaves_per_group = 0;  // three tiers; 0 = all leaves form one group
  // Three tiers; spine j of every group and the super-spines that it has uplinks to are column j.
  int super_spines = 0;
  int super_uplink_cables = 1;  // from a spine to each super-spine of its column
  BytesPerSecond uplink;        // leaf to spine, per link, per direction
  BytesPerSecond super_uplink;  // spine to super-spine
  Seconds hop_latency;          // per link
};

// Links upwards of a leaf, and of all spines of a group together.
inline int uplinks_of_leaf(const Fabric& fabric) {
  return fabric.spines / fabric.planes * fabric.uplink_cables;
}
inline int uplinks_of_group(const Fabric& fabric) {
  return fabric.super_spines * fabric.super_uplink_cables;
}

struct Server {
  std::string name;     // "s0", unique
  std::string type;     // key into Cluster::server_types
  std::string address;  // host:port of its agent; empty = the server is emulated by the lab
};

struct Cluster {
  std::string name;
  std::map<std::string, ServerType> server_types;
  Fabric fabric;
  std::vector<Server> servers;

  const ServerType& type_of(ServerId server) const {
    return server_types.at(servers[server.index()].type);
  }
};

// One device of the cluster: the index-th of its server.
struct DeviceRef {
  ServerId server;
  int index = 0;

  friend auto operator<=>(const DeviceRef&, const DeviceRef&) = default;
};

// The parts of domains that a job uses: of as few domains as hold its servers, as many of each but
// the last, which may have fewer. 64 servers on domains of 18 are 16 of each of four, 70 are 18 of
// each of three and 16 of the last.
struct DomainParts {
  int domains = 1;
  int servers = 1;  // of each but the last
  int last = 1;

  bool are_equal() const { return servers == last; }
  friend bool operator==(const DomainParts&, const DomainParts&) = default;
};
DomainParts domain_parts(const ScaleUp& domain, int servers);
// A sentence with the remedy where the parts are not equal, else "".
std::string unequal_parts_note(const ScaleUp& domain, int servers);

// The domain of each server, numbered from 0 in the order of servers.
std::vector<int> scale_up_domains(const Cluster& cluster);

// The most servers that `regatta lab`, `measure` and `run` start; planning accepts more.
inline constexpr int kMaxStartedServers = 8192;
// Fails with kInvalidInput above it.
Status check_can_start(const Cluster& cluster);

// All devices, servers in order, indices ascending: "rank order".
std::vector<DeviceRef> all_devices(const Cluster& cluster);

// The NIC that a device sends through: index % nic_count, -1 when its server has none.
int nic_of(const Cluster& cluster, DeviceRef device);

// "s2/1": server name and device index.
std::string to_string(const Cluster& cluster, DeviceRef device);

}  // namespace regatta::topo
