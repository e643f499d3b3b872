// topo/server_matrix.h: the path between every two parts of a server (devices, NICs): its class and
// its bandwidth. Classes are those of `nvidia-smi topo -m`, with SHM added for devices that
// communicate through host memory.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "regatta/base/core/units.h"
#include "regatta/model/topo/cluster.h"

namespace regatta::topo {

// Nearest first. kSelf: the part itself. kNvlink, kShm: the devices' own link. PCIe: kPix one
// switch, kPxb several switches, kPhb the host bridge. kNode: one NUMA node. kSys: across nodes.
enum class PathKind { kSelf, kNvlink, kShm, kPix, kPxb, kPhb, kNode, kSys };

std::string_view to_string(PathKind kind);  // "X", "NVL", "SHM", "PIX", "PXB", "PHB", "NODE", "SYS"

// A device or NIC of one server and its place.
struct ServerComponent {
  std::string name;  // "dev0", "nic1", or the system's name: "eth0"
  bool is_nic = false;
  int numa = 0;
  // PCIe, from the host bridge down to the switch port above the part; empty: not known.
  std::vector<std::string> bridges;
  BytesPerSecond rate;  // of its own link, per direction; 0 = not known
};

struct PairPath {
  PathKind kind = PathKind::kSelf;
  BytesPerSecond bandwidth;  // per direction; 0 = not known
};

struct ServerMatrix {
  std::vector<ServerComponent> parts;        // devices first
  std::vector<std::vector<PairPath>> paths;  // square, symmetric
};

// The parts that the description implies: "dev0".., "nic0".., spread evenly over the NUMA nodes and
// the PCIe switches in order.
std::vector<ServerComponent> described_components(const ServerType& type);

// Paths of `parts`, devices joined by `intra`. The bandwidth of a pair is that of the narrower
// end; not known when it has a NIC whose rate is not known.
ServerMatrix matrix_of(std::vector<ServerComponent> parts, const IntraLink& intra);

inline ServerMatrix server_matrix(const ServerType& type) {
  return matrix_of(described_components(type), type.intra);
}

// Misplacements, one sentence each: devices whose NIC (d % nic_count) sits on another NUMA node
// while another NIC is nearer.
std::vector<std::string> placement_notes(const ServerMatrix& matrix);

// Rows for format_table(): the heading, then one row a part; cells hold the class alone.
std::vector<std::vector<std::string>> class_table(const ServerMatrix& matrix);

// Rows for format_table(): the bandwidth of each class of pairs: ends, class, bandwidth, pairs.
std::vector<std::vector<std::string>> bandwidth_table(const ServerMatrix& matrix);

// A few words that explain a class: "NVLink".
std::string_view explain(PathKind kind);

}  // namespace regatta::topo
