// packing/gpu_node.h: nodes and pods as placement sees them.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace regatta::packing {

inline constexpr int kGpuMilli = 1000;        // thousandths in a whole GPU
inline constexpr int kNodeGpusMax = 16;       // GPUs of a node
inline constexpr int kGpuModelsMax = 32;      // different GPU models of a cluster
inline constexpr int kCpuMilliMax = 1000000;  // thousandths of cores of a node: 1,000 cores

// A node and its free amounts.
struct GpuNode {
  std::string name;
  int cpu_milli = 0;
  int memory_mib = 0;
  int gpus = 0;
  std::array<std::int16_t, kNodeGpusMax> gpu_free_milli{};  // of the first `gpus`: 0 to kGpuMilli
  std::string gpu_model;
};

// A request: `gpu_milli` on each of `gpus` different GPUs of one node.
struct Pod {
  int cpu_milli = 0;
  int memory_mib = 0;
  int gpus = 0;                         // 0: the pod needs no GPU
  int gpu_milli = 0;                    // 1 to kGpuMilli where gpus > 0
  std::vector<std::string> gpu_models;  // the models that it accepts; empty: every one

  int gpu_request_milli() const { return gpus * gpu_milli; }
};

// Where a pod goes: the index of a node and the set of its GPUs, one bit each.
struct PodPlacement {
  int node = 0;
  std::uint32_t gpus = 0;

  bool operator==(const PodPlacement&) const = default;
};

}  // namespace regatta::packing
