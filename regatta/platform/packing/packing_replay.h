// packing/packing_replay.h: how full a cluster becomes when pods arrive one after another and none
// leaves. Pure.
// Source: the experiments of Weng et al., USENIX ATC 2023, as
// hkust-adsl/kubernetes-scheduler-simulator runs them.
#pragma once

#include <cstdint>
#include <vector>

#include "regatta/base/core/result.h"
#include "regatta/platform/packing/gpu_node.h"
#include "regatta/platform/packing/placement_policy.h"

namespace regatta::packing {

inline constexpr double kPackingLoad = 1.3;  // requests of all arrivals over the GPU capacity

struct PackingResult {
  double allocated_share = 0;  // of the GPU capacity, when arrivals have requested all of it
  int arrived = 0;             // pods until then
  int placed = 0;
  int decisions = 0;               // pods in all
  double allocated_share_end = 0;  // when all pods have arrived
};

// The arrivals of a seed: `pods` and random ones of them again, or fewer of them, until they
// request `load` times the GPU capacity of `nodes`; then shuffled. Empty where no pod requests a
// GPU.
std::vector<Pod> resample_pods(const std::vector<GpuNode>& nodes, const std::vector<Pod>& pods,
                               double load, std::uint64_t seed);

// Pods that fit nowhere are dropped. Fails as Placer::create() does.
Result<PackingResult> replay_packing(const std::vector<GpuNode>& nodes,
                                     const std::vector<Pod>& pods, const PlacementPolicy& policy,
                                     std::uint64_t seed);

}  // namespace regatta::packing
