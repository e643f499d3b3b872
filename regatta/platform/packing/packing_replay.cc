#include "regatta/platform/packing/packing_replay.h"

#include <algorithm>
#include <utility>

#include "regatta/platform/packing/placer.h"
#include "regatta/platform/packing/random_sequence.h"

namespace regatta::packing {
namespace {

long long free_gpu_milli(const std::vector<GpuNode>& nodes) {
  long long milli = 0;
  for (const GpuNode& node : nodes)
    for (int gpu = 0; gpu < node.gpus; ++gpu)
      milli += node.gpu_free_milli[static_cast<std::size_t>(gpu)];
  return milli;
}

}  // namespace

std::vector<Pod> resample_pods(const std::vector<GpuNode>& nodes, const std::vector<Pod>& pods,
                               double load, std::uint64_t seed) {
  RandomSequence random(seed);
  const double target = load * static_cast<double>(free_gpu_milli(nodes));
  double requested = 0;
  for (const Pod& pod : pods)
    requested += pod.gpu_request_milli();
  if (requested == 0) return {};
  std::vector<Pod> arrivals = pods;
  while (requested < target) {
    arrivals.push_back(pods[random.below(pods.size())]);
    requested += arrivals.back().gpu_request_milli();
  }
  while (requested > target) {
    const std::size_t at = random.below(arrivals.size());
    requested -= arrivals[at].gpu_request_milli();
    std::swap(arrivals[at], arrivals.back());
    arrivals.pop_back();
  }
  for (std::size_t left = arrivals.size(); left > 1; --left)
    std::swap(arrivals[left - 1], arrivals[random.below(left)]);
  return arrivals;
}

Result<PackingResult> replay_packing(const std::vector<GpuNode>& nodes,
                                     const std::vector<Pod>& pods, const PlacementPolicy& policy,
                                     std::uint64_t seed) {
  REGATTA_TRY(placer, Placer::create(nodes, pods, policy, seed));
  const auto capacity = static_cast<double>(free_gpu_milli(nodes));
  PackingResult result;
  long long arrived = 0;
  long long allocated = 0;
  for (const Pod& pod : resample_pods(nodes, pods, kPackingLoad, seed)) {
    ++result.decisions;
    arrived += pod.gpu_request_milli();
    const bool is_placed = placer.place(placer.pod_class(pod)).has_value();
    if (is_placed) allocated += pod.gpu_request_milli();
    result.allocated_share_end = static_cast<double>(allocated) / capacity;
    if (result.arrived > 0) continue;
    if (is_placed) ++result.placed;
    if (static_cast<double>(arrived) < capacity) continue;
    result.arrived = result.decisions;
    result.allocated_share = result.allocated_share_end;
  }
  return result;
}

}  // namespace regatta::packing
