#include "regatta/platform/sched/internal/free_capacity.h"

#include <algorithm>
#include <cstdint>

#include <gtest/gtest.h>

#include "regatta/platform/sched/internal/node_fit.h"
#include "regatta/platform/sched/internal/test_random_gangs.h"

namespace regatta::sched {
namespace {

TEST(FreeCapacity, IsTheSameAfterAReplicaCameAndWent) {
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    RandomSequence random(seed);
    const ClusterSnapshot snapshot = random_snapshot(random, 4, 4);
    FreeCapacity free(snapshot);
    const Role role = random_role(random, 1);
    for (int node = 0; node < free.nodes(); ++node)
      for (const std::uint32_t devices : device_choices(free.node(node), free.free(node), role)) {
        const NodeCapacity before = free.free(node);
        free.take(role, {0, node, devices});
        free.give(role, {0, node, devices});
        ASSERT_EQ(free.free(node), before) << "seed " << seed;
      }
  }
}

TEST(FreeCapacity, OffersNothingOfAFailedDeviceWhenItsJobEnds) {
  ClusterSnapshot snapshot;
  snapshot.nodes.push_back({.name = "n0", .devices = 2, .device_memory_mib = 10});
  snapshot.nodes[0].failed_devices = 0b01;
  RunningJob job;
  job.request.roles.push_back({.devices = 2});
  job.replicas.push_back({0, 0, 0b11});
  snapshot.running.push_back(job);
  FreeCapacity free(snapshot);
  EXPECT_EQ(free.free(0).whole_free, 0U);
  free.give(job.request.roles[0], job.replicas[0]);
  EXPECT_EQ(free.free(0).whole_free, 0b10U);
}

TEST(FreeCapacity, PutsTheNodesOfALeafAndOfAGroupSideBySide) {
  ClusterSnapshot snapshot;
  for (const auto& [leaf, group] : {std::pair{2, 1}, {0, 0}, {2, 1}, {1, 0}, {0, 0}})
    snapshot.nodes.push_back({.leaf = leaf, .group = group});
  const FreeCapacity free(snapshot);
  EXPECT_EQ(free.domains().order, (std::vector<int>{1, 4, 3, 0, 2}));
  ASSERT_EQ(free.domains_of(TopologyLevel::kLeaf).size(), 3U);
  EXPECT_EQ(free.domains_of(TopologyLevel::kLeaf)[0].end, 2);
  ASSERT_EQ(free.domains_of(TopologyLevel::kGroup).size(), 2U);
  EXPECT_EQ(free.domains_of(TopologyLevel::kGroup)[0].end, 3);
  EXPECT_EQ(free.domains_of(TopologyLevel::kServer).size(), 5U);
  EXPECT_EQ(free.domains_of(TopologyLevel::kCluster).size(), 1U);
}

TEST(NodeFit, HoldsAsManyReplicasAsATrialOfAllDevices) {
  for (std::uint64_t seed = 0; seed < 2000; ++seed) {
    RandomSequence random(seed);
    const ClusterSnapshot snapshot = random_snapshot(random, 1, 3);
    const FreeCapacity free(snapshot);
    JobRequest job;
    job.roles = {random_role(random, 5)};
    job.roles[0].subgroup_replicas = 1;
    const GangSize size = smallest_size(job);
    const bool fits = GangTrial(free, job, size).fits();
    ASSERT_EQ(replicas_max(free.node(0), free.free(0), job.roles[0]) >= size[0], fits)
        << "seed " << seed;
    ASSERT_EQ(fit_on_node(free.node(0), free.free(0), job.roles, size).has_value(), fits)
        << "seed " << seed;
  }
}

TEST(NodeFit, PlacesSlicesOfSeveralRolesWheneverTheyFitTogether) {
  int fitting = 0;
  for (std::uint64_t seed = 0; seed < 3000; ++seed) {
    RandomSequence random(seed);
    ClusterSnapshot snapshot;
    snapshot.nodes.push_back(
        {.devices = random_int(random, 1, 3), .device_memory_mib = 100, .cpu_milli = 100'000});
    const FreeCapacity free(snapshot);
    JobRequest job;
    for (int i = 0; i < 3; ++i)
      job.roles.push_back({.replicas_min = random_int(random, 1, 2),
                           .devices = random_int(random, 1, 2),
                           .device_milli = 50 * random_int(random, 3, 14),
                           .device_memory_mib = random_int(random, 10, 70)});
    const GangSize size = smallest_size(job);
    const bool fits = GangTrial(free, job, size).fits();
    fitting += fits ? 1 : 0;
    const auto placements = fit_on_node(free.node(0), free.free(0), job.roles, size);
    ASSERT_EQ(placements.has_value(), fits) << "seed " << seed;
    if (!placements) continue;
    ASSERT_EQ(placement_fault(free, job, size, *placements), "") << "seed " << seed;
  }
  EXPECT_GT(fitting, 300);
  EXPECT_LT(fitting, 2700);
}

TEST(NodeFit, KeepsTheDevicesOfAReplicaBelowOneNumaNode) {
  ClusterSnapshot snapshot;
  snapshot.nodes.push_back({.devices = 8, .numa_nodes = 2});
  RunningJob job;
  job.request.roles.push_back({.devices = 1});
  job.replicas.push_back({0, 0, 0b1});
  snapshot.running.push_back(job);
  const FreeCapacity free(snapshot);
  const std::vector<Role> roles = {{.devices = 2}, {.devices = 4}};
  const auto placements = fit_on_node(free.node(0), free.free(0), roles, std::vector<int>{1, 1});
  ASSERT_TRUE(placements);
  EXPECT_EQ((*placements)[0].devices & 0xf0U, 0U);
  EXPECT_EQ((*placements)[1].devices, 0xf0U);
}

// The sums and positions of FreeCapacity, counted anew.
void expect_sums_of_nodes(const FreeCapacity& free) {
  std::vector<int> with_free;
  for (int level = 0; level < kTopologyLevels; ++level) {
    const auto domains = free.domains_of(static_cast<TopologyLevel>(level));
    for (int domain = 0; domain < std::ssize(domains); ++domain) {
      long long milli = 0;
      int nodes = 0;
      int whole = 0;
      for (int i = at(domains, domain).begin; i < at(domains, domain).end; ++i) {
        const int node = at(free.domains().order, i);
        const int devices = free.node(node).devices;
        if (!free.free(node).is_open || devices == 0) continue;
        ++nodes;
        whole += free.free(node).whole_free == (1U << static_cast<unsigned>(devices)) - 1U ? 1 : 0;
        for (int device = 0; device < devices; ++device)
          milli += std::max<int>(0, at(free.free(node).device_milli, device));
      }
      ASSERT_EQ(free.free_milli(static_cast<TopologyLevel>(level), domain), milli);
      ASSERT_EQ(free.is_wholly_free(static_cast<TopologyLevel>(level), domain),
                nodes > 0 && whole == nodes);
      if (level == 0 && milli > 0) with_free.push_back(domain);
    }
  }
  std::vector<int> visited;
  free.visit_free({0, free.nodes()}, [&](int position) { visited.push_back(position); });
  ASSERT_EQ(visited, with_free);
}

TEST(FreeCapacity, KeepsTheSumsOfDomainsWhileReplicasComeAndGo) {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    RandomSequence random(seed);
    const ClusterSnapshot snapshot = random_snapshot(random, 150, 40);
    FreeCapacity free(snapshot);
    expect_sums_of_nodes(free);
    for (const RunningJob& job : snapshot.running)
      for (const ReplicaPlacement& replica : job.replicas) {
        const Role& role = at(job.request.roles, replica.role);
        if (random.below(2) == 0) free.give(role, replica);
        if (random.below(4) == 0) free.block(role, replica);
        if (random.below(4) == 0) free.take(role, replica);  // mixed: beyond the whole
        if (random.below(8) == 0) free.set_open(replica.node, random.below(2) == 0);
      }
    expect_sums_of_nodes(free);
    if (random.below(2) == 0) free.close_devices();
    for (int i = 0; i < 10; ++i) {
      const int node = static_cast<int>(random.below(static_cast<std::uint64_t>(free.nodes())));
      const int devices = free.node(node).devices;
      if (devices == 0) continue;
      const int milli = 100 * static_cast<int>(1 + random.below(10));
      const int device = static_cast<int>(random.below(static_cast<std::uint64_t>(devices)));
      free.open_device(node, device, milli, 1024);
    }
    expect_sums_of_nodes(free);
  }
}

}  // namespace
}  // namespace regatta::sched
