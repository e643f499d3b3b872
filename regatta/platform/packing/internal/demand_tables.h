// packing/internal/demand_tables.h: which share of the expected pods can use a node's free GPUs, as
// tables.
// Source: Weng et al., "Beware of Fragmentation: Scheduling GPU-Sharing Workloads with
// Fragmentation Gradient Descent", USENIX ATC 2023.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "regatta/platform/packing/gpu_node.h"

namespace regatta::packing {

// A pod with its models as a set of bits; its place in a list is the id of its class.
struct PodClass {
  int cpu_milli = 0;
  int memory_mib = 0;
  int gpus = 0;
  int gpu_milli = 0;
  std::uint32_t models = ~0U;

  bool operator==(const PodClass&) const = default;
  auto operator<=>(const PodClass&) const = default;
};

// A node with its model as an index.
struct NodeState {
  int cpu_milli = 0;
  int memory_mib = 0;
  int model = 0;
  int gpus = 0;
  std::array<std::int16_t, kNodeGpusMax> gpu_free{};
};

// The most frequent classes of pods that make up `share` of `pods`, with weights that sum to 1.
// Memory does not count.
struct WeightedPodClass {
  PodClass pod;
  double weight = 0;
};
std::vector<WeightedPodClass> typical_pods(const std::vector<PodClass>& pods, double share);

// Usable share of a node: the free thousandths of its GPUs that a typical pod can use, in the mean
// over typical pods. Its fragment is the rest of the free thousandths.
//
// A pod on one GPU uses a device on its own, so its part of the sum is a table per model, level of
// free CPU and free share of the device. Pods on several GPUs need enough of them together.
class DemandTables {
 public:
  DemandTables() = default;
  // `arrivals_ahead`: 0 for the definition above. Otherwise a free device is worth what it takes in
  // the mean when so many pods come and each is taken or left for the best, a stochastic knapsack.
  DemandTables(const std::vector<WeightedPodClass>& typical, int models, int arrivals_ahead);

  // The number of different CPU requests of typical pods that fit in `cpu_milli`.
  int cpu_level(int cpu_milli) const;
  // Part of one device for pods on one GPU, for each free share from 0 to kGpuMilli.
  const double* device_usable(int model, int cpu_level) const {
    return &device_usable_[offset(model, cpu_level) * (kGpuMilli + 1)];
  }
  // Part of the node for pods on several GPUs.
  double together_usable(int model, int cpu_level, const NodeState& node) const;
  bool has_together() const { return !requests_.empty(); }
  double usable(const NodeState& node) const;

 private:
  struct Request {  // of several GPUs
    int gpus = 0;
    int gpu_milli = 0;
  };
  std::size_t offset(int model, int cpu_level) const {
    return static_cast<std::size_t>(model) * (cpu_steps_.size() + 1) +
           static_cast<std::size_t>(cpu_level);
  }

  std::vector<int> cpu_steps_;  // different CPU requests of typical pods, ascending
  std::vector<double> device_usable_;
  std::vector<Request> requests_;
  std::vector<double> request_weights_;  // by offset(), then request
};

}  // namespace regatta::packing
