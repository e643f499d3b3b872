// packing/test_random_cluster.h: small random clusters and pods for tests.
#pragma once

#include <string>
#include <vector>

#include "regatta/platform/packing/gpu_node.h"
#include "regatta/platform/packing/random_sequence.h"

namespace regatta::packing {

inline std::vector<GpuNode> random_nodes(RandomSequence& random, std::size_t nodes_max) {
  std::vector<GpuNode> nodes(1 + random.below(nodes_max));
  for (GpuNode& node : nodes) {
    node.name = "n";
    node.cpu_milli = 1000 * static_cast<int>(random.below(33));
    node.memory_mib = 1024 * static_cast<int>(random.below(65));
    node.gpus = static_cast<int>(random.below(5));
    for (int gpu = 0; gpu < node.gpus; ++gpu)
      node.gpu_free_milli[static_cast<std::size_t>(gpu)] = static_cast<std::int16_t>(
          random.below(2) == 0 ? kGpuMilli : 10 * static_cast<int>(random.below(101)));
    node.gpu_model = random.below(2) == 0 ? "T4" : "G2";
  }
  return nodes;
}

inline std::vector<Pod> random_pods(RandomSequence& random, std::size_t count) {
  std::vector<Pod> pods(count);
  for (Pod& pod : pods) {
    pod.cpu_milli = 1000 * static_cast<int>(random.below(9));
    pod.memory_mib = 1024 * static_cast<int>(random.below(9));
    pod.gpus = static_cast<int>(random.below(4));
    if (pod.gpus == 0) continue;
    const bool is_shared = pod.gpus == 1 && random.below(3) != 0;
    pod.gpu_milli = is_shared ? 10 * static_cast<int>(1 + random.below(99)) : kGpuMilli;
    if (random.below(3) == 0) pod.gpu_models = {random.below(2) == 0 ? "T4" : "G2"};
  }
  return pods;
}

// Whether a pod fits, from the definition.
inline bool pod_fits(const Pod& pod, const GpuNode& node) {
  if (pod.cpu_milli > node.cpu_milli || pod.memory_mib > node.memory_mib) return false;
  bool is_accepted = pod.gpus == 0 || pod.gpu_models.empty();
  for (const std::string& model : pod.gpu_models)
    is_accepted |= model == node.gpu_model;
  int fitting = 0;
  for (int gpu = 0; gpu < node.gpus; ++gpu)
    if (node.gpu_free_milli[static_cast<std::size_t>(gpu)] >= pod.gpu_milli) ++fitting;
  return is_accepted && fitting >= pod.gpus;
}

// The node with the pod on these GPUs.
inline GpuNode node_with(GpuNode node, const Pod& pod, std::uint32_t gpus) {
  node.cpu_milli -= pod.cpu_milli;
  node.memory_mib -= pod.memory_mib;
  for (int gpu = 0; gpu < node.gpus; ++gpu) {
    std::int16_t& free = node.gpu_free_milli[static_cast<std::size_t>(gpu)];
    if ((gpus >> gpu & 1U) != 0) free = static_cast<std::int16_t>(free - pod.gpu_milli);
  }
  return node;
}

}  // namespace regatta::packing
