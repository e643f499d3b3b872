#include "regatta/model/cost/rates.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include <fmt/core.h>

#include "regatta/base/core/units.h"

namespace regatta::cost {
namespace {

using namespace regatta::literals;

// Share of the peak that matrix products reach, by floating-point operations of one product.
// GPU: the A100 table of Calculon (Isaev et al., SC'23, systems/a100_80g.json).
// CPU: OpenBLAS on one core: small products pay for packing and threads of one core keep near peak.
struct Efficiency {
  double flops;
  double gpu;
  double cpu;
};
constexpr Efficiency kMatmulEfficiency[] = {{1e6, 0.02, 0.40},
                                            {1e8, 0.10, 0.75},
                                            {1e9, 0.60, 0.85},
                                            {1.6e10, 0.90, 0.90},
                                            {1.28e11, 0.95, 0.90}};

// Share of the memory bandwidth that streaming operators reach: Calculon, same table (>= 10 MB).
constexpr double kStreamEfficiency = 0.75;
// Memory bandwidth of one core when the description gives none: a server core of this decade.
constexpr BytesPerSecond kCoreBandwidth = 10_GBps;
// Launch of one operator: a CUDA launch through a framework; a call into libtorch on a whole core.
constexpr Seconds kGpuOverhead = 5.0_us;
constexpr Seconds kCpuOverhead = 5.0_us;
// The lab gives each device about this share of a core when the file names none.
constexpr double kUsualShare = 0.2;
// TCP over Ethernet carries 1448 bytes of every 1538 on the wire; one socket round adds about 30
// us.
constexpr double kTcpEfficiency = 0.94;
constexpr Seconds kTcpLatency = 30.0_us;
// Shared memory and device links: copy in, copy out, synchronise (Calculon: NVLink 0.65 to 0.8).
constexpr double kIntraEfficiency = 0.7;
constexpr Seconds kIntraLatency = 10.0_us;

int cube_side(double flops) {
  int side = 1;
  while (2.0 * (side + 1) * (side + 1) * (side + 1) <= flops)
    ++side;
  return side;
}

void add_products(DeviceRates& rates, const topo::DeviceType& device, workload::Precision precision,
                  double share) {
  const FlopsPerSecond peak =
      precision == workload::Precision::kBf16 ? device.bf16_peak : device.fp32_peak;
  if (peak.value <= 0) return;
  const bool gpu = device.kind == topo::DeviceKind::kGpu;
  for (const Efficiency& row : kMatmulEfficiency) {
    const int side = cube_side(row.flops);
    rates.matmul.push_back(
        {side, side, side, precision, peak * ((gpu ? row.gpu : row.cpu) * share)});
  }
}

DeviceRates described_device(const topo::DeviceType& device) {
  const bool gpu = device.kind == topo::DeviceKind::kGpu;
  const double share = gpu ? 1.0 : (device.cpu_share > 0 ? device.cpu_share : kUsualShare);
  DeviceRates rates;
  rates.described = device.fp32_peak * share;
  add_products(rates, device, workload::Precision::kFp32, share);
  add_products(rates, device, workload::Precision::kBf16, share);
  BytesPerSecond memory = device.memory_bandwidth;
  if (memory.value <= 0) memory = kCoreBandwidth;
  rates.copy_bandwidth = memory * (kStreamEfficiency * share);
  rates.pointwise_bandwidth = rates.copy_bandwidth;
  rates.operator_overhead = (gpu ? kGpuOverhead : kCpuOverhead) / share;
  return rates;
}

bool differ(double a, double b) {
  return std::abs(a - b) > 0.01 * std::max(a, b);
}

int leaf_column(const topo::Cluster& cluster, ServerId server) {
  const int per_leaf = cluster.fabric.servers_per_leaf;
  return per_leaf > 0 ? server.value / per_leaf : 0;
}

// The number of classes that the cluster can have: a search may stop at so many.
std::size_t most_classes(const topo::Cluster& cluster) {
  const topo::Fabric& fabric = cluster.fabric;
  const ServerId last{static_cast<int>(cluster.servers.size()) - 1};
  const bool shares_leaf = last.value > 0 && fabric.servers_per_leaf != 1;
  const bool leaves_leaf = leaf_column(cluster, last) > 0 || fabric.rails > 1;
  const bool leaves_group = fabric.tiers == 3 && fabric.leaves_per_group > 0 &&
                            leaf_column(cluster, last) >=
                                std::max(1, fabric.leaves_per_group / std::max(1, fabric.rails));
  const bool shares_server =
      std::any_of(cluster.server_types.begin(), cluster.server_types.end(),
                  [](const auto& type) { return type.second.device_count > 1; });
  return static_cast<std::size_t>(shares_server) + static_cast<std::size_t>(shares_leaf) +
         static_cast<std::size_t>(leaves_leaf) + static_cast<std::size_t>(leaves_group);
}

}  // namespace

std::string_view to_string(PathClass path) {
  switch (path) {
    case PathClass::kSameServer:
      return "same_server";
    case PathClass::kSameLeaf:
      return "same_leaf";
    case PathClass::kSameGroup:
      return "same_group";
    case PathClass::kSuperSpine:
      return "super_spine";
  }
  return "unknown";
}

std::string_view to_string(PointwiseOp op) {
  switch (op) {
    case PointwiseOp::kAdd:
      return "add";
    case PointwiseOp::kGelu:
      return "gelu";
    case PointwiseOp::kGeluBackward:
      return "gelu_backward";
    case PointwiseOp::kLayerNorm:
      return "layer_norm";
    case PointwiseOp::kLayerNormBackward:
      return "layer_norm_backward";
    case PointwiseOp::kSoftmax:
      return "softmax";
    case PointwiseOp::kSoftmaxBackward:
      return "softmax_backward";
    case PointwiseOp::kBiasGradient:
      return "bias_gradient";
    case PointwiseOp::kAdam:
      return "adam";
  }
  return "unknown";
}

double pointwise_bytes(PointwiseOp op, double elements, workload::Precision precision) {
  const double element_size = workload::bytes_per_element(precision);
  switch (op) {
    case PointwiseOp::kBiasGradient:
      return elements * element_size;
    case PointwiseOp::kGelu:
    case PointwiseOp::kLayerNorm:
    case PointwiseOp::kSoftmax:
      return 2 * elements * element_size;
    case PointwiseOp::kAdd:
    case PointwiseOp::kGeluBackward:
    case PointwiseOp::kLayerNormBackward:
    case PointwiseOp::kSoftmaxBackward:
      return 3 * elements * element_size;
    case PointwiseOp::kAdam:
      return 8 * 4 * elements;
  }
  return 0;
}

BytesPerSecond pointwise_bandwidth(const DeviceRates& rates, PointwiseOp op,
                                   workload::Precision precision) {
  for (const PointwiseRate& rate : rates.pointwise) {
    if (rate.op == op && rate.precision == precision) return rate.bandwidth;
  }
  return rates.pointwise_bandwidth;
}

PathClass path_class(const topo::Cluster& cluster, topo::DeviceRef from, topo::DeviceRef to) {
  if (from.server == to.server) return PathClass::kSameServer;
  const topo::Fabric& fabric = cluster.fabric;
  const int rails = std::max(1, fabric.rails);
  const int from_column = leaf_column(cluster, from.server);
  const int to_column = leaf_column(cluster, to.server);
  const bool same_rail = topo::nic_of(cluster, from) % rails == topo::nic_of(cluster, to) % rails;
  if (from_column == to_column && same_rail) return PathClass::kSameLeaf;
  if (fabric.tiers < 3 || fabric.leaves_per_group <= 0) return PathClass::kSameGroup;
  // leaves_per_group counts the leaves of all rails: a group holds this many columns of them.
  const int columns = std::max(1, fabric.leaves_per_group / rails);
  return from_column / columns == to_column / columns ? PathClass::kSameGroup
                                                      : PathClass::kSuperSpine;
}

Result<BytesPerSecond> described_bandwidth(const topo::Cluster& cluster, const topo::Graph& graph,
                                           topo::DeviceRef from, topo::DeviceRef to) {
  if (from.server == to.server) return cluster.type_of(from.server).intra.bandwidth;
  REGATTA_TRY(shares, topo::ecmp_shares(graph, from.server, topo::nic_of(cluster, from), to.server,
                                        topo::nic_of(cluster, to)));
  double rate = std::numeric_limits<double>::infinity();
  for (const topo::LinkShare& share : shares)
    rate = std::min(rate, graph.links[share.link.link.index()].rate.value / share.share);
  return BytesPerSecond{rate};
}

std::vector<ClassPair> representative_pairs(const topo::Cluster& cluster) {
  std::vector<ClassPair> pairs;
  const std::size_t most = most_classes(cluster);
  const std::vector<topo::DeviceRef> devices = topo::all_devices(cluster);
  for (const topo::DeviceRef from : devices) {
    for (const topo::DeviceRef to : devices) {
      if (from == to) continue;
      const PathClass path = path_class(cluster, from, to);
      const bool known = std::any_of(pairs.begin(), pairs.end(),
                                     [&](const ClassPair& pair) { return pair.path == path; });
      if (!known) pairs.push_back({path, from, to});
    }
    if (pairs.size() >= most) break;
  }
  std::sort(pairs.begin(), pairs.end(),
            [](const ClassPair& a, const ClassPair& b) { return a.path < b.path; });
  return pairs;
}

Rates described_rates(const topo::Cluster& cluster) {
  Rates rates;
  rates.source = "described";
  for (const topo::Server& server : cluster.servers) {
    const topo::DeviceType& device = cluster.server_types.at(server.type).device;
    rates.devices.try_emplace(device.name, described_device(device));
  }
  const topo::Graph graph = topo::build_graph(cluster);
  for (const ClassPair& pair : representative_pairs(cluster)) {
    const auto bandwidth = described_bandwidth(cluster, graph, pair.from, pair.to);
    if (!bandwidth) continue;  // rails without a spine: no path, and no plan may use it
    PathRates path;
    path.path = pair.path;
    path.described = *bandwidth;
    if (pair.path == PathClass::kSameServer) {
      path.latency = cluster.type_of(pair.from.server).intra.latency + kIntraLatency;
      path.bandwidth = *bandwidth * kIntraEfficiency;
    } else {
      const auto hops = topo::hop_count(graph, pair.from.server, topo::nic_of(cluster, pair.from),
                                        pair.to.server, topo::nic_of(cluster, pair.to));
      path.latency =
          kTcpLatency + cluster.fabric.hop_latency * static_cast<double>(hops.value_or(0));
      path.bandwidth = *bandwidth * kTcpEfficiency;
    }
    rates.paths.push_back(path);
  }
  return rates;
}

std::string changed_since(const Rates& measured, const topo::Cluster& cluster) {
  const Rates now = described_rates(cluster);
  for (const auto& [name, device] : measured.devices) {
    const auto found = now.devices.find(name);
    if (found == now.devices.end() || device.described.value <= 0) continue;
    const FlopsPerSecond described = found->second.described;
    if (differ(device.described.value, described.value)) {
      return fmt::format("device {} was described as {}, now as {}", name,
                         format_flops_per_second(device.described),
                         format_flops_per_second(described));
    }
  }
  for (const PathRates& path : now.paths) {
    for (const PathRates& then : measured.paths) {
      if (then.path == path.path && differ(then.described.value, path.described.value)) {
        return fmt::format("path {} was described as {}, now as {}", to_string(path.path),
                           format_bits_per_second(then.described),
                           format_bits_per_second(path.described));
      }
    }
  }
  return "";
}

}  // namespace regatta::cost
