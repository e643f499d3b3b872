// bench/gangs/random_cluster.h: a large cluster that running jobs fill at random.
#pragma once

#include <cstdint>

#include "regatta/platform/sched/cluster_snapshot.h"

namespace regatta::sched {

inline constexpr int kBenchNodes = 2048;
inline constexpr int kBenchNodeDevices = 8;

// 2,048 nodes of 8 devices, leaves of 32 nodes, groups of 8 leaves. `used_share` of the devices are
// in use: half of them by gangs of 1 to 32 whole nodes, half by jobs of 1, 2 or 4 devices, on
// random nodes, but seldom on a wholly free node for a small job.
ClusterSnapshot random_cluster(double used_share, std::uint64_t seed);

}  // namespace regatta::sched
