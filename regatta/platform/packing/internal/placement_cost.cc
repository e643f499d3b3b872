#include "regatta/platform/packing/internal/placement_cost.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace regatta::packing {
namespace {

// Sums of equal terms in another order must not round to another integer score.
constexpr double kRounding = 1e-9;

int free_milli(const NodeState& node) {
  int free = 0;
  for (int gpu = 0; gpu < node.gpus; ++gpu)
    free += node.gpu_free[static_cast<std::size_t>(gpu)];
  return free;
}

// The `count` GPUs with the least free share that fits; ties go to the lowest index.
std::uint32_t tightest_gpus(const NodeState& node, int milli, int count) {
  std::uint32_t chosen = 0;
  for (int taken = 0; taken < count; ++taken) {
    int best = -1;
    for (int gpu = 0; gpu < node.gpus; ++gpu) {
      const int free = node.gpu_free[static_cast<std::size_t>(gpu)];
      if (free < milli || (chosen >> gpu & 1U) != 0) continue;
      if (best < 0 || free < node.gpu_free[static_cast<std::size_t>(best)]) best = gpu;
    }
    chosen |= 1U << best;
  }
  return chosen;
}

// CPU and GPU together, each beside the largest node of the trace.
PlacementCost best_fit_cost(const PodClass& pod, const NodeState& node) {
  constexpr double kCpuLargest = 128000;
  constexpr double kGpuLargest = 8000;
  const double cpu = node.cpu_milli - pod.cpu_milli;
  const double gpu = free_milli(node) - pod.gpus * pod.gpu_milli;
  return {0.5 * cpu / kCpuLargest + 0.5 * gpu / kGpuLargest,
          tightest_gpus(node, pod.gpu_milli, pod.gpus)};
}

// Calls visit(gpus, usable milli afterwards) for each choice of GPUs that differs.
template <typename Visit>
void each_choice(const PodClass& pod, const NodeState& node, const DemandTables& tables,
                 Visit&& visit) {
  NodeState after = node;
  after.cpu_milli -= pod.cpu_milli;
  const int level = tables.cpu_level(after.cpu_milli);
  const double* const device = tables.device_usable(node.model, level);
  double alone = 0;
  for (int gpu = 0; gpu < node.gpus; ++gpu)
    alone += device[node.gpu_free[static_cast<std::size_t>(gpu)]];
  if (pod.gpus != 1) {
    const std::uint32_t chosen = tightest_gpus(node, pod.gpu_milli, pod.gpus);
    after = node;
    change(after, pod, chosen, -1);
    visit(chosen, tables.usable(after));
    return;
  }
  for (int gpu = 0; gpu < node.gpus; ++gpu) {
    const auto at = static_cast<std::size_t>(gpu);
    const std::int16_t free = node.gpu_free[at];
    if (free < pod.gpu_milli || std::find(node.gpu_free.begin(), node.gpu_free.begin() + gpu,
                                          free) != node.gpu_free.begin() + gpu)
      continue;
    after.gpu_free[at] = static_cast<std::int16_t>(free - pod.gpu_milli);
    const double usable = alone - device[free] + device[after.gpu_free[at]] +
                          tables.together_usable(node.model, level, after);
    after.gpu_free[at] = free;
    visit(1U << gpu, usable);
  }
}

// Free GPU share beyond what the free CPU serves at the mean request of demand.
double short_of_cpu(double free, double cpu, double cpu_per_gpu) {
  return std::max(0.0, free - cpu / cpu_per_gpu);
}

// The terms of kWeighted that do not depend on the chosen GPUs.
double node_cost(const PodClass& pod, const NodeState& node, double cpu_per_gpu,
                 const PlacementWeights& weights) {
  const int free = free_milli(node);
  const double cpu_after = node.cpu_milli - pod.cpu_milli;
  const double cpu_short = short_of_cpu(free - pod.gpus * pod.gpu_milli, cpu_after, cpu_per_gpu) -
                           short_of_cpu(free, node.cpu_milli, cpu_per_gpu);
  return weights.cpu_short * cpu_short / kGpuMilli + weights.cpu_free * cpu_after / 1e5;
}

}  // namespace

bool fits(const PodClass& pod, const NodeState& node) {
  if (pod.cpu_milli > node.cpu_milli || pod.memory_mib > node.memory_mib) return false;
  if (pod.gpus == 0) return true;
  if ((pod.models >> node.model & 1U) == 0) return false;
  int fitting = 0;
  for (int gpu = 0; gpu < node.gpus; ++gpu)
    fitting += node.gpu_free[static_cast<std::size_t>(gpu)] >= pod.gpu_milli ? 1 : 0;
  return fitting >= pod.gpus;
}

PlacementCost placement_cost(const PodClass& pod, const NodeState& node,
                             const DemandSummary& demand, const PlacementPolicy& policy) {
  if (!fits(pod, node)) return {};
  if (policy.rule == PlacementRule::kBestFit) return best_fit_cost(pod, node);
  const double usable_before = demand.tables.usable(node);
  const int request = pod.gpus * pod.gpu_milli;
  const bool is_weighted = policy.rule == PlacementRule::kWeighted;
  const double of_node = is_weighted ? node_cost(pod, node, demand.cpu_per_gpu, policy.weights) : 0;
  PlacementCost best;
  each_choice(pod, node, demand.tables, [&](std::uint32_t gpus, double usable_after) {
    // The fragment grows by what becomes unusable beyond the request itself.
    const double growth = (usable_before - usable_after - request) / kGpuMilli;
    double cost =
        is_weighted ? growth + of_node : -std::floor(100 / (1 + std::exp(growth)) + kRounding);
    if (is_weighted && pod.gpus == 1) {
      const auto gpu = static_cast<std::size_t>(std::countr_zero(gpus));
      cost += policy.weights.device_free * (node.gpu_free[gpu] - pod.gpu_milli) / kGpuMilli;
    }
    if (cost < best.cost) best = {cost, gpus};
  });
  return best;
}

void change(NodeState& node, const PodClass& pod, std::uint32_t gpus, int sign) {
  node.cpu_milli += sign * pod.cpu_milli;
  node.memory_mib += sign * pod.memory_mib;
  for (int gpu = 0; gpu < node.gpus; ++gpu) {
    if ((gpus >> gpu & 1U) == 0) continue;
    std::int16_t& free = node.gpu_free[static_cast<std::size_t>(gpu)];
    free = static_cast<std::int16_t>(free + sign * pod.gpu_milli);
  }
}

}  // namespace regatta::packing
