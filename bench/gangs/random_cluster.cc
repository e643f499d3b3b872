#include "bench/gangs/random_cluster.h"

#include <bit>
#include <string>
#include <vector>

#include "regatta/base/core/ids.h"
#include "regatta/platform/packing/random_sequence.h"

namespace regatta::sched {
namespace {

constexpr int kLeafNodes = 32;
constexpr int kGroupLeaves = 8;
constexpr std::uint32_t kWholeNode = (1U << kBenchNodeDevices) - 1;

}  // namespace

ClusterSnapshot random_cluster(double used_share, std::uint64_t seed) {
  packing::RandomSequence random(seed);
  ClusterSnapshot snapshot;
  for (int i = 0; i < kBenchNodes; ++i)
    snapshot.nodes.push_back({.name = "n" + std::to_string(i),
                              .device_type = "A100",
                              .devices = kBenchNodeDevices,
                              .device_memory_mib = 81'920,
                              .cpu_milli = 128'000,
                              .memory_mib = 1'048'576,
                              .nics = 8,
                              .numa_nodes = 2,
                              .leaf = i / kLeafNodes,
                              .group = i / kLeafNodes / kGroupLeaves,
                              .failures_per_day = 0.01 * random.uniform()});
  std::vector<std::uint32_t> used(kBenchNodes);
  const int wanted = static_cast<int>(used_share * kBenchNodes * kBenchNodeDevices);
  for (int devices = 0, small = 0; devices < wanted;) {
    RunningJob job;
    job.request.name = "j" + std::to_string(snapshot.running.size());
    const bool is_small = 2 * small < devices;
    const int size = is_small ? 1 << random.below(3) : kBenchNodeDevices;
    const int replicas = is_small ? 1 : 1 << random.below(6);
    job.request.roles.push_back({.name = "worker",
                                 .replicas_min = replicas,
                                 .replicas_max = replicas,
                                 .devices = size,
                                 .cpu_milli = 8000 * size});
    while (std::ssize(job.replicas) < replicas && devices < wanted) {
      const std::size_t node = random.below(kBenchNodes);
      if (std::popcount(used[node]) + size > kBenchNodeDevices) {
        // Few whole nodes are left in a full cluster: what is small fills it up.
        if (!is_small && random.below(200) == 0) break;
        continue;
      }
      // Most small jobs come where others are already.
      if (is_small && used[node] == 0 && random.below(100) != 0) continue;
      std::uint32_t chosen = 0;
      for (std::uint32_t free = kWholeNode & ~used[node]; std::popcount(chosen) < size;
           free &= free - 1)
        chosen |= free & (~free + 1);
      used[node] |= chosen;
      devices += size;
      small += is_small ? size : 0;
      job.replicas.push_back({0, static_cast<int>(node), chosen});
    }
    if (!is_small && job.replicas.empty()) small -= kBenchNodeDevices;
    if (!job.replicas.empty()) snapshot.running.push_back(std::move(job));
  }
  return snapshot;
}

}  // namespace regatta::sched
