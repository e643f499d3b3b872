// cost/rates.h: the speed of the devices and paths of a cluster, measured or taken from the
// description, and its text: "CLUSTER.measured.json", which `regatta measure` saves.
#pragma once

#include <array>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "regatta/base/core/result.h"
#include "regatta/base/core/units.h"
#include "regatta/model/topo/cluster.h"
#include "regatta/model/topo/graph.h"
#include "regatta/model/workload/model.h"

namespace regatta::cost {

// Achieved rate of C[m,n] = A[m,k] B[k,n], with all devices of the cluster busy at once.
struct MatmulRate {
  int m = 0;
  int n = 0;
  int k = 0;
  workload::Precision precision = workload::Precision::kFp32;
  FlopsPerSecond rate;
};

// Pointwise operators differ up to fortyfold in bytes per second on a CPU (transcendental
// functions, unvectorised bf16 paths), so each has its own rate. The causal mask belongs to the
// product that makes the scores.
enum class PointwiseOp {
  kAdd,
  kGelu,
  kGeluBackward,
  kLayerNorm,
  kLayerNormBackward,
  kSoftmax,
  kSoftmaxBackward,
  kBiasGradient,
  kAdam,
};
inline constexpr std::array kPointwiseOps = {PointwiseOp::kAdd,
                                             PointwiseOp::kGelu,
                                             PointwiseOp::kGeluBackward,
                                             PointwiseOp::kLayerNorm,
                                             PointwiseOp::kLayerNormBackward,
                                             PointwiseOp::kSoftmax,
                                             PointwiseOp::kSoftmaxBackward,
                                             PointwiseOp::kBiasGradient,
                                             PointwiseOp::kAdam};
std::string_view to_string(PointwiseOp op);  // "add", "gelu", "gelu_backward", "layer_norm", ...

// The bytes that rates count for `op` on `elements`: every operand once, read or written. In the
// compute precision: 1 element each (bias gradient: the sum over the tokens), 2 (the forwards), 3
// (add, the backwards). Adam, always in fp32: gradient, two moments and weight read and written, 32
// bytes per parameter.
double pointwise_bytes(PointwiseOp op, double elements, workload::Precision precision);

struct PointwiseRate {
  PointwiseOp op = PointwiseOp::kAdd;
  workload::Precision precision = workload::Precision::kFp32;
  BytesPerSecond bandwidth;
};

struct DeviceRates {
  std::vector<MatmulRate> matmul;  // at least one per precision in use
  BytesPerSecond copy_bandwidth;   // bytes read + written per second of a large copy
  BytesPerSecond
      pointwise_bandwidth;    // the same for pointwise operators (add, gelu, norm, softmax)
  Seconds operator_overhead;  // fixed cost of launching one operator
  std::vector<PointwiseRate> pointwise;  // where known; pointwise_bandwidth stands for the rest
  FlopsPerSecond described;  // fp32 peak of the description, with its share of a core; 0: not known
};

// The rate of `op`: its own when known in this precision, otherwise rates.pointwise_bandwidth.
BytesPerSecond pointwise_bandwidth(const DeviceRates& rates, PointwiseOp op,
                                   workload::Precision precision);

// The distinct kinds of path between two ranks: same server, same leaf, and so on.
enum class PathClass { kSameServer, kSameLeaf, kSameGroup, kSuperSpine };
inline constexpr std::array kPathClasses = {PathClass::kSameServer, PathClass::kSameLeaf,
                                            PathClass::kSameGroup, PathClass::kSuperSpine};
std::string_view to_string(
    PathClass path);  // "same_server", "same_leaf", "same_group", "super_spine"

// The rates of one class: measured over several pairs, or described by its first pair.
struct PathRates {
  PathClass path = PathClass::kSameServer;
  Seconds latency;           // half a round trip of an 8-byte message, as coll sees it: the median
  BytesPerSecond bandwidth;  // each way, one pair sending both ways, others idle: harmonic mean
  BytesPerSecond described;  // described_bandwidth() of the first of the pairs
};

struct Rates {
  std::string source;                          // "described", or "measured 2026-11-21 on 8 devices"
  std::map<std::string, DeviceRates> devices;  // by device type name
  std::vector<PathRates> paths;                // the classes that exist in the cluster
  bool shared_cores = false;                   // devices are not held to a fixed share: noisy
};

// Rates from the description alone: peak figures times the usual efficiencies; rates.cc states the
// source of each. Requires a validated cluster.
Rates described_rates(const topo::Cluster& cluster);

// The reason why `measured` are not the rates of `cluster`, with its present and its former
// description; "" when they agree as far as the rates show. Requires a validated cluster.
std::string changed_since(const Rates& measured, const topo::Cluster& cluster);

// The class of the path between two devices; rails count as separate leaves.
PathClass path_class(const topo::Cluster& cluster, topo::DeviceRef from, topo::DeviceRef to);

// The bandwidth of the cluster file for one pair of devices without other traffic: the intra-server
// bandwidth, or the smallest of link rate / ECMP share over the links between their NICs (two
// uplinks that share a flow evenly count together). Fails with kNotFound when no path exists.
Result<BytesPerSecond> described_bandwidth(const topo::Cluster& cluster, const topo::Graph& graph,
                                           topo::DeviceRef from, topo::DeviceRef to);

// The first pair of devices, in rank order, of every path class that exists in the cluster.
struct ClassPair {
  PathClass path = PathClass::kSameServer;
  topo::DeviceRef from;
  topo::DeviceRef to;
};
std::vector<ClassPair> representative_pairs(const topo::Cluster& cluster);

// Cost::Rates as JSON text: the file CLUSTER.measured.json.
// Versioned; keys carry their unit: bandwidth_Bps, latency_s, rate_flops.

// Indented text that parse_rates() gives back bit for bit. An unknown value (`described` of a
// device, 0) is left out.
std::string rates_to_json(const Rates& rates);

// Fails with kInvalidInput when `text` is not such a document: the message starts with `name` (the
// file, for people), names the path of the key that is wrong, and says to run `regatta measure`
// again. Every rate and time must be more than 0; only described_flops may be missing. Unknown keys
// are ignored. The functions that use rates check whether they suffice for a cluster.
Result<Rates> parse_rates(std::string_view text, const std::string& name);

}  // namespace regatta::cost
