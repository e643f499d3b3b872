#include "regatta/platform/sched/internal/gang_placement.h"

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <set>
#include <utility>

#include <gtest/gtest.h>

#include "regatta/platform/sched/internal/test_random_gangs.h"

namespace regatta::sched {
namespace {

constexpr GangWeights kWeights;

// Leaves of `leaf_nodes` nodes with 8 devices, two leaves a group.
ClusterSnapshot even_cluster(int nodes, int leaf_nodes) {
  ClusterSnapshot snapshot;
  for (int i = 0; i < nodes; ++i)
    snapshot.nodes.push_back({.name = "n" + std::to_string(i),
                              .device_type = "A",
                              .devices = 8,
                              .device_memory_mib = 100,
                              .cpu_milli = 64'000,
                              .numa_nodes = 2,
                              .leaf = i / leaf_nodes,
                              .group = i / leaf_nodes / 2});
  return snapshot;
}

// `count` devices of the node are in use.
void occupy(ClusterSnapshot& snapshot, int node, int count) {
  RunningJob job;
  job.request.roles.push_back({.devices = count});
  job.replicas.push_back({0, node, (1U << count) - 1});
  snapshot.running.push_back(job);
}

JobRequest gang_of(int replicas, int devices) {
  JobRequest job;
  job.roles.push_back({.replicas_min = replicas, .replicas_max = replicas, .devices = devices});
  return job;
}

std::optional<GangPlacement> place(const ClusterSnapshot& snapshot, const JobRequest& job) {
  return place_gang(FreeCapacity(snapshot), {job, smallest_size(job), kWeights});
}

std::set<int> nodes_of(const GangPlacement& placement) {
  std::set<int> nodes;
  for (const ReplicaPlacement& replica : placement.replicas)
    nodes.insert(replica.node);
  return nodes;
}

TEST(PlaceGang, PlacesAGangWheneverATrialOfAllPlacementsDoes) {
  int fitting = 0;
  constexpr int kStates = 10'000;
  for (std::uint64_t seed = 0; seed < kStates; ++seed) {
    RandomSequence random(seed);
    const ClusterSnapshot snapshot = random_snapshot(random, 6, random_int(random, 0, 3));
    const FreeCapacity free(snapshot);
    const JobRequest job = random_gang(random);
    const GangSize size = smallest_size(job);
    const auto placement = place_gang(free, {job, size, kWeights});
    const bool fits = GangTrial(free, job, size).fits();
    ASSERT_EQ(placement.has_value(), fits) << "seed " << seed;
    fitting += fits ? 1 : 0;
    if (!placement) continue;
    ASSERT_EQ(placement_fault(free, job, size, placement->replicas), "") << "seed " << seed;
    const auto again = place_gang(free, {job, size, kWeights});
    ASSERT_EQ(again->replicas, placement->replicas) << "seed " << seed;
  }
  EXPECT_GT(fitting, kStates / 5);
  EXPECT_LT(fitting, kStates * 4 / 5);
}

TEST(PlaceGang, CompletesADegradedGangWheneverATrialOfAllPlacementsDoes) {
  int fitting = 0;
  for (std::uint64_t seed = 0; seed < 4000; ++seed) {
    RandomSequence random(seed);
    ClusterSnapshot snapshot = random_snapshot(random, 6, 3);
    const JobRequest job = random_gang(random);
    const GangSize size = smallest_size(job);
    const auto whole = place_gang(FreeCapacity(snapshot), {job, size, kWeights});
    if (!whole) continue;
    // Some replicas are lost, and other jobs may have taken their places.
    RunningJob running;
    running.request = job;
    for (const ReplicaPlacement& replica : whole->replicas)
      if (random.below(2) == 0) running.replicas.push_back(replica);
    snapshot.running.push_back(running);
    if (random.below(2) == 0) snapshot.nodes[0].health = NodeHealth::kFailed;
    const FreeCapacity free(snapshot);
    const auto placement = place_gang(free, {job, size, kWeights, running.replicas});
    const bool fits = GangTrial(free, job, size, running.replicas).fits();
    ASSERT_EQ(placement.has_value(), fits) << "seed " << seed;
    if (!placement) continue;
    ++fitting;
    ASSERT_EQ(placement_fault(free, job, size, placement->replicas, running.replicas), "")
        << "seed " << seed;
  }
  EXPECT_GT(fitting, 500);
}

TEST(PlaceGang, PutsSmallJobsOnSmallServersFirst) {
  ClusterSnapshot snapshot = even_cluster(4, 4);
  snapshot.nodes[3].devices = 2;
  occupy(snapshot, 0, 6);
  EXPECT_EQ(nodes_of(*place(snapshot, gang_of(1, 2))), (std::set<int>{3}));
  EXPECT_EQ(nodes_of(*place(snapshot, gang_of(1, 1))), (std::set<int>{3}));
  occupy(snapshot, 1, 7);
  EXPECT_EQ(nodes_of(*place(snapshot, gang_of(1, 1))), (std::set<int>{1}));
}

// Servers of 2, 4 and 8 devices, in two leaves.
ClusterSnapshot mixed_cluster(RandomSequence& random) {
  const int nodes = random_int(random, 4, 24);
  ClusterSnapshot snapshot = even_cluster(nodes, random.below(2) == 0 ? nodes : (nodes + 1) / 2);
  for (ClusterNode& node : snapshot.nodes)
    node.devices = std::array{2, 4, 8, 8}[random.below(4)];
  return snapshot;
}

// The placement of a job of one replica by best fit: on the node with the fewest devices free.
std::optional<ReplicaPlacement> best_fit(const FreeCapacity& free, int devices) {
  int best = -1;
  const auto free_on = [&free](int node) { return std::popcount(free.free(node).whole_free); };
  for (int node = 0; node < free.nodes(); ++node)
    if (free_on(node) >= devices && (best < 0 || free_on(node) < free_on(best))) best = node;
  if (best < 0) return std::nullopt;
  ReplicaPlacement replica{0, best, 0};
  for (std::uint32_t left = free.free(best).whole_free; std::popcount(replica.devices) < devices;
       left &= left - 1)
    replica.devices |= left & (~left + 1);
  return replica;
}

// Devices that a mix of jobs of 1, 2, 4 and 8 devices has when as many have come as would fill the
// cluster `demand` times, of which jobs end in turn where `ends` is set: in the mean after each.
class MixedFill {
 public:
  MixedFill(const ClusterSnapshot& snapshot, bool ends) : free_(snapshot), ends_(ends) {
    for (const ClusterNode& node : snapshot.nodes)
      devices_ += node.devices;
  }

  double run(bool by_best_fit, double demand, RandomSequence random) {
    int arrived = 0;
    int jobs = 0;
    double sum = 0;
    for (; arrived < demand * devices_; ++jobs) {
      const JobRequest job = gang_of(1, 1 << random.below(4));
      arrived += job.roles[0].devices;
      if (const auto replica = place_one(job, by_best_fit)) {
        free_.take(job.roles[0], *replica);
        running_.emplace_back(job, *replica);
        used_ += job.roles[0].devices;
      }
      const std::size_t ending = random.below(1 << 16);
      if (ends_ && 10 * used_ > 9 * devices_) end(ending % running_.size());
      sum += used_;
    }
    return ends_ ? sum / jobs : used_;
  }

 private:
  std::optional<ReplicaPlacement> place_one(const JobRequest& job, bool by_best_fit) const {
    if (by_best_fit) return best_fit(free_, job.roles[0].devices);
    const auto placement = place_gang(free_, {job, smallest_size(job), kWeights});
    if (!placement) return std::nullopt;
    return placement->replicas[0];
  }

  void end(std::size_t index) {
    const auto& [job, replica] = running_[index];
    free_.give(job.roles[0], replica);
    used_ -= job.roles[0].devices;
    running_.erase(running_.begin() + static_cast<std::ptrdiff_t>(index));
  }

  FreeCapacity free_;
  bool ends_;
  int devices_ = 0;
  int used_ = 0;
  std::vector<std::pair<JobRequest, ReplicaPlacement>> running_;
};

TEST(PlaceGang, FillsAClusterWithAMixOfJobsAtLeastAsFullAsBestFitDoes) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    RandomSequence random(seed);
    const ClusterSnapshot snapshot = mixed_cluster(random);
    const double best_fit = MixedFill(snapshot, false).run(true, 1.3, random);
    EXPECT_GE(MixedFill(snapshot, false).run(false, 1.3, random), best_fit) << "seed " << seed;
  }
}

TEST(PlaceGang, AllocatesInTheMeanAsMuchAsBestFitDoesWhileJobsEnd) {
  double placed = 0;
  double best_fit = 0;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    RandomSequence random(seed);
    const ClusterSnapshot snapshot = mixed_cluster(random);
    best_fit += MixedFill(snapshot, true).run(true, 8, random);
    placed += MixedFill(snapshot, true).run(false, 8, random);
  }
  EXPECT_GE(placed, best_fit);
  RecordProperty("over_best_fit", std::to_string(placed / best_fit));
}

TEST(PlaceGang, StaysBelowOneLeafWhereOneHoldsIt) {
  ClusterSnapshot snapshot = even_cluster(16, 4);
  occupy(snapshot, 0, 8);
  JobRequest job = gang_of(4, 8);
  job.slowdown = {1, 1, 1.1, 1.3};
  const auto placement = place(snapshot, job);
  ASSERT_TRUE(placement);
  EXPECT_EQ(placement->level, TopologyLevel::kLeaf);
  EXPECT_NE(placement->replicas[0].node / 4, 0);
}

TEST(PlaceGang, FillsPartlyUsedNodesAndLeavesBeforeWhatIsWhollyFree) {
  ClusterSnapshot snapshot = even_cluster(16, 4);
  occupy(snapshot, 9, 4);
  const auto half = place(snapshot, gang_of(1, 4));
  ASSERT_TRUE(half);
  EXPECT_EQ(nodes_of(*half), (std::set<int>{9}));
  const auto whole = place(snapshot, gang_of(2, 8));
  ASSERT_TRUE(whole);
  for (const int node : nodes_of(*whole))
    EXPECT_EQ(node / 4, 2);
}

TEST(PlaceGang, PrefersTheNodeThatItFillsExactly) {
  ClusterSnapshot snapshot = even_cluster(4, 4);
  occupy(snapshot, 0, 2);
  occupy(snapshot, 1, 5);
  occupy(snapshot, 2, 4);
  const auto placement = place(snapshot, gang_of(1, 3));
  ASSERT_TRUE(placement);
  EXPECT_EQ(nodes_of(*placement), (std::set<int>{1}));
}

TEST(PlaceGang, AvoidsNodesThatAreExpectedToFail) {
  ClusterSnapshot snapshot = even_cluster(4, 4);
  for (const int node : {0, 1})
    snapshot.nodes[as_index(node)].failures_per_day = 0.5;
  const auto placement = place(snapshot, gang_of(2, 8));
  ASSERT_TRUE(placement);
  EXPECT_EQ(nodes_of(*placement), (std::set<int>{2, 3}));
}

TEST(PlaceGang, SpreadsTheReplicasOfAnOnlineJobAndPacksThoseOfABatchJob) {
  const ClusterSnapshot snapshot = even_cluster(16, 4);
  JobRequest job = gang_of(4, 1);
  const auto batch = place(snapshot, job);
  job.job_class = JobClass::kOnline;
  const auto online = place_gang(FreeCapacity(snapshot), {job, smallest_size(job), {.spread = 10}});
  ASSERT_TRUE(batch && online);
  EXPECT_EQ(nodes_of(*batch).size(), 1U);
  EXPECT_EQ(nodes_of(*online).size(), 4U);
}

TEST(PlaceGang, PrefersALevelEvenWhereAWiderOneWouldCostLess) {
  ClusterSnapshot snapshot = even_cluster(8, 4);
  for (const int node : {0, 1})
    occupy(snapshot, node, 4);
  JobRequest job = gang_of(2, 4);
  job.slowdown = {1, 1, 1, 1};
  EXPECT_GT(nodes_of(*place(snapshot, job)).size(), 1U);
  job.topology.preferred = TopologyLevel::kServer;
  EXPECT_EQ(nodes_of(*place(snapshot, job)).size(), 1U);
}

TEST(PlaceGang, TakesTheFirstDeviceTypeOfTheListThatHoldsTheWholeGang) {
  ClusterSnapshot snapshot = even_cluster(4, 4);
  snapshot.nodes[0].device_type = "B";
  JobRequest job = gang_of(2, 8);
  job.device_types = {"B", "A"};
  const auto placement = place(snapshot, job);
  ASSERT_TRUE(placement);
  EXPECT_FALSE(nodes_of(*placement).contains(0));
  job = gang_of(1, 8);
  job.device_types = {"B", "A"};
  EXPECT_EQ(nodes_of(*place(snapshot, job)), (std::set<int>{0}));
}

TEST(PlaceGang, KeepsSubgroupsBelowOneLeafEach) {
  ClusterSnapshot snapshot = even_cluster(16, 4);
  for (const int leaf : {0, 1, 2})
    occupy(snapshot, 4 * leaf, 1);
  // Each of three leaves has room for three nodes: subgroups of two leave one of them.
  JobRequest job = gang_of(10, 8);
  job.roles[0].subgroup_replicas = 2;
  job.roles[0].subgroup_level = TopologyLevel::kLeaf;
  const auto placement = place(snapshot, job);
  ASSERT_TRUE(placement);
  for (std::size_t i = 0; i < placement->replicas.size(); i += 2)
    EXPECT_EQ(placement->replicas[i].node / 4, placement->replicas[i + 1].node / 4);
  job.roles[0].replicas_min = 12;
  EXPECT_FALSE(place(snapshot, job));
}

}  // namespace
}  // namespace regatta::sched
