#include "regatta/model/topo/server_matrix.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "regatta/base/core/ids.h"
#include "regatta/base/core/units.h"

namespace regatta::topo {
namespace {

// Even spread in order: with 8 parts on 2 nodes, parts 0-3 are on node 0.
int numa_of(int index, int count, int numa_nodes) {
  return static_cast<int>(static_cast<long long>(index) * numa_nodes / count);
}

// Empty where the tree is not known.
std::vector<std::string> described_bridges(const ServerType& type, std::string_view kind, int index,
                                           int count, int numa) {
  const PcieTree& pcie = type.pcie;
  if (pcie.switches <= 0 || type.device_count % pcie.switches != 0 ||
      type.nic_count % pcie.switches != 0)
    return {};
  const int number = index * pcie.switches / count;
  const std::string name = fmt::format("switch{}", number);
  const std::string host = pcie.has_one_host_bridge ? fmt::format("host{}", numa) : name + ".host";
  std::vector<std::string> bridges = {host, name};
  for (int level = 0; pcie.has_cascades && level < 2; ++level)
    bridges.push_back(fmt::format("{}.{}{}.{}", name, kind, index, level));
  return bridges;
}

PathKind pcie_path(const ServerComponent& a, const ServerComponent& b) {
  std::size_t shared = 0;
  while (shared < a.bridges.size() && shared < b.bridges.size() &&
         a.bridges[shared] == b.bridges[shared])
    ++shared;
  if (shared == 0) return a.numa == b.numa ? PathKind::kNode : PathKind::kSys;
  if (shared == 1) return PathKind::kPhb;
  // Below the last shared bridge, one more bridge on each side are the two ports of one switch.
  const bool one_switch = a.bridges.size() <= shared + 1 && b.bridges.size() <= shared + 1;
  return one_switch ? PathKind::kPix : PathKind::kPxb;
}

BytesPerSecond narrower(BytesPerSecond a, BytesPerSecond b) {
  if (a.value <= 0) return b;
  if (b.value <= 0) return a;
  return std::min(a, b);
}

bool has_unknown_rate(const ServerComponent& part) {
  return part.is_nic && part.rate.value <= 0;
}

PairPath path_between(const ServerComponent& a, const ServerComponent& b, const IntraLink& intra) {
  const bool two_devices = !a.is_nic && !b.is_nic;
  if (two_devices && intra.kind == IntraKind::kNvlink) return {PathKind::kNvlink, intra.bandwidth};
  if (two_devices && intra.kind == IntraKind::kShm) return {PathKind::kShm, intra.bandwidth};
  // The PCIe rate of the other end says nothing about a NIC whose own rate is not known.
  if (has_unknown_rate(a) || has_unknown_rate(b)) return {pcie_path(a, b), {}};
  const BytesPerSecond ends = narrower(a.rate, b.rate);
  return {pcie_path(a, b), two_devices ? narrower(ends, intra.bandwidth) : ends};
}

}  // namespace

std::string_view to_string(PathKind kind) {
  switch (kind) {
    case PathKind::kSelf:
      return "X";
    case PathKind::kNvlink:
      return "NVL";
    case PathKind::kShm:
      return "SHM";
    case PathKind::kPix:
      return "PIX";
    case PathKind::kPxb:
      return "PXB";
    case PathKind::kPhb:
      return "PHB";
    case PathKind::kNode:
      return "NODE";
    case PathKind::kSys:
      return "SYS";
  }
  return "X";
}

std::vector<ServerComponent> described_components(const ServerType& type) {
  std::vector<ServerComponent> parts;
  parts.reserve(static_cast<std::size_t>(type.device_count + type.nic_count));
  for (int i = 0; i < type.device_count; ++i) {
    const int numa = numa_of(i, type.device_count, type.numa_nodes);
    parts.push_back({.name = fmt::format("dev{}", i),
                     .is_nic = false,
                     .numa = numa,
                     .bridges = described_bridges(type, "dev", i, type.device_count, numa),
                     .rate = {}});
  }
  for (int i = 0; i < type.nic_count; ++i) {
    const int numa = numa_of(i, type.nic_count, type.numa_nodes);
    parts.push_back({.name = fmt::format("nic{}", i),
                     .is_nic = true,
                     .numa = numa,
                     .bridges = described_bridges(type, "nic", i, type.nic_count, numa),
                     .rate = type.nic_rate});
  }
  return parts;
}

ServerMatrix matrix_of(std::vector<ServerComponent> parts, const IntraLink& intra) {
  std::stable_partition(parts.begin(), parts.end(), [](const auto& part) { return !part.is_nic; });
  ServerMatrix matrix{.parts = std::move(parts), .paths = {}};
  const std::size_t count = matrix.parts.size();
  matrix.paths.assign(count, std::vector<PairPath>(count));
  for (std::size_t i = 0; i < count; ++i) {
    for (std::size_t j = 0; j < count; ++j) {
      if (i != j) matrix.paths[i][j] = path_between(matrix.parts[i], matrix.parts[j], intra);
    }
  }
  return matrix;
}

std::vector<std::string> placement_notes(const ServerMatrix& matrix) {
  const auto first_nic = std::find_if(matrix.parts.begin(), matrix.parts.end(),
                                      [](const ServerComponent& part) { return part.is_nic; });
  const auto devices = static_cast<std::size_t>(first_nic - matrix.parts.begin());
  const std::size_t nics = matrix.parts.size() - devices;
  std::vector<std::string> notes;
  for (std::size_t d = 0; nics > 0 && d < devices; ++d) {
    const std::vector<PairPath>& paths = matrix.paths[d];
    const std::size_t serving = devices + d % nics;
    std::size_t nearest = serving;
    for (std::size_t nic = devices; nic < matrix.parts.size(); ++nic) {
      if (paths[nic].kind < paths[nearest].kind) nearest = nic;
    }
    if (paths[serving].kind != PathKind::kSys || nearest == serving) continue;
    notes.push_back(
        fmt::format("{} is served by {} across NUMA nodes ({} to {}); {} is nearer, so "
                    "number the NICs by node or use one a device",
                    matrix.parts[d].name, matrix.parts[serving].name, matrix.parts[d].numa,
                    matrix.parts[serving].numa, matrix.parts[nearest].name));
  }
  return notes;
}

std::vector<std::vector<std::string>> class_table(const ServerMatrix& matrix) {
  std::vector<std::vector<std::string>> rows(1);
  rows[0].emplace_back("");
  for (const ServerComponent& part : matrix.parts)
    rows[0].push_back(part.name);
  rows[0].emplace_back("NUMA");
  for (std::size_t i = 0; i < matrix.parts.size(); ++i) {
    std::vector<std::string> row{matrix.parts[i].name};
    for (const PairPath& path : matrix.paths[i])
      row.emplace_back(to_string(path.kind));
    row.push_back(std::to_string(matrix.parts[i].numa));
    rows.push_back(std::move(row));
  }
  return rows;
}

std::vector<std::vector<std::string>> bandwidth_table(const ServerMatrix& matrix) {
  // Ends (0: two devices, 1: device and NIC, 2: two NICs), class, bandwidth -> pairs.
  std::map<std::tuple<int, PathKind, BytesPerSecond>, int> pairs;
  for (std::size_t i = 0; i < matrix.parts.size(); ++i) {
    for (std::size_t j = i + 1; j < matrix.parts.size(); ++j) {
      const int nics = (matrix.parts[i].is_nic ? 1 : 0) + (matrix.parts[j].is_nic ? 1 : 0);
      ++pairs[{nics, matrix.paths[i][j].kind, matrix.paths[i][j].bandwidth}];
    }
  }
  static constexpr std::array<std::string_view, 3> kEnds{"device - device", "device - nic",
                                                         "nic - nic"};
  std::vector<std::vector<std::string>> rows = {{"pair", "path", "bandwidth", "pairs", "meaning"}};
  for (const auto& [key, count] : pairs) {
    const auto& [nics, kind, bandwidth] = key;
    std::string rate = "-";
    if (bandwidth.value > 0)
      rate = nics > 0 ? format_bits_per_second(bandwidth) : format_bytes_per_second(bandwidth);
    rows.push_back({std::string(at(kEnds, nics)), std::string(to_string(kind)), rate,
                    std::to_string(count), std::string(explain(kind))});
  }
  return rows;
}

std::string_view explain(PathKind kind) {
  switch (kind) {
    case PathKind::kSelf:
      return "the part itself";
    case PathKind::kNvlink:
      return "NVLink";
    case PathKind::kShm:
      return "memory of the host";
    case PathKind::kPix:
      return "one PCIe switch";
    case PathKind::kPxb:
      return "several PCIe switches";
    case PathKind::kPhb:
      return "a PCIe host bridge";
    case PathKind::kNode:
      return "within a NUMA node";
    case PathKind::kSys:
      return "across NUMA nodes";
  }
  return "the part itself";
}

}  // namespace regatta::topo
