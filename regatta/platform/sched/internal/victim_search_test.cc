#include "regatta/platform/sched/internal/victim_search.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <numeric>

#include <gtest/gtest.h>

#include "regatta/platform/sched/internal/rising_order.h"
#include "regatta/platform/sched/internal/test_random_gangs.h"

namespace regatta::sched {
namespace {

constexpr GangWeights kWeights;
constexpr long long kMovesOfEach = 16;  // replicas, in the search

// A job of the option, or one replica of it.
struct TrialItem {
  int option = 0;
  int shed = -1;
  double cost = 0;
};

class VictimTrial {
 public:
  VictimTrial(const ClusterSnapshot& snapshot, const JobRequest& job, const GangSize& size,
              const std::vector<VictimOption>& options, std::span<const ReplicaPlacement> kept = {})
      : kept_(kept),
        snapshot_(snapshot),
        free_(snapshot),
        job_(job),
        size_(size),
        options_(options) {
    for (int i = 0; i < std::ssize(options); ++i) {
      items_.push_back({i, -1, at(options, i).eviction_cost});
      for (const int shed : at(options, i).sheddable)
        items_.push_back({i, shed, at(options, i).shrink_cost});
    }
  }

  // The least cost of a set that makes room; infinite where there is none. Sets below one that
  // makes none are skipped.
  double least_cost() {
    const std::uint32_t all = (1U << items_.size()) - 1;
    if (!fits(all)) return std::numeric_limits<double>::infinity();
    std::vector<std::uint32_t> too_small;
    for (std::size_t i = 0; i < items_.size(); ++i)
      if (!fits(all & ~(1U << i))) too_small.push_back(all & ~(1U << i));
    std::vector<std::pair<double, std::uint32_t>> sets;
    for (std::uint32_t set = 0; set <= all; ++set)
      sets.emplace_back(cost_of(set), set);
    std::sort(sets.begin(), sets.end());
    for (const auto& [cost, set] : sets) {
      const auto is_below = [set = set](std::uint32_t other) { return (set & ~other) == 0; };
      if (std::any_of(too_small.begin(), too_small.end(), is_below)) continue;
      if (fits(set)) return cost;
      too_small.push_back(set);
    }
    return std::numeric_limits<double>::infinity();
  }

  std::uint32_t set_of(const VictimSet& victims) const {
    std::uint32_t set = 0;
    for (const Victim& victim : victims.victims)
      for (std::size_t i = 0; i < items_.size(); ++i) {
        if (at(options_, items_[i].option).job != victim.job) continue;
        const bool is_in = victim.is_evicted ? items_[i].shed < 0
                                             : std::find(victim.shed.begin(), victim.shed.end(),
                                                         items_[i].shed) != victim.shed.end();
        if (is_in) set |= 1U << i;
      }
    return set;
  }

  double cost_of(std::uint32_t set) const {
    double cost = 0;
    for (std::size_t i = 0; i < items_.size(); ++i)
      if ((set >> i & 1U) != 0) cost += items_[i].cost;
    return cost;
  }

  FreeCapacity freed(std::uint32_t set) const {
    FreeCapacity free = free_;
    for (const VictimOption& option : options_) {
      const RunningJob& job = at(snapshot_.running, option.job);
      for (int replica = 0; replica < std::ssize(job.replicas); ++replica) {
        bool is_freed = false;
        for (std::size_t i = 0; i < items_.size(); ++i)
          if ((set >> i & 1U) != 0 && at(options_, items_[i].option).job == option.job)
            is_freed |= items_[i].shed < 0 || items_[i].shed == replica;
        const ReplicaPlacement& placement = at(job.replicas, replica);
        if (is_freed) free.give(at(job.request.roles, placement.role), placement);
      }
    }
    return free;
  }

  bool fits(std::uint32_t set) const { return GangTrial(freed(set), job_, size_, kept_).fits(); }

 private:
  std::span<const ReplicaPlacement> kept_;
  const ClusterSnapshot& snapshot_;
  FreeCapacity free_;
  const JobRequest& job_;
  const GangSize& size_;
  const std::vector<VictimOption>& options_;
  std::vector<TrialItem> items_;
};

std::vector<VictimOption> random_options(RandomSequence& random, const ClusterSnapshot& snapshot) {
  std::vector<VictimOption> options;
  int items = 0;
  for (int job = 0; job < std::ssize(snapshot.running); ++job) {
    if (random.below(6) == 0) continue;
    VictimOption option;
    option.job = job;
    option.eviction_cost = random.below(10) == 0 ? 0 : 10 * random.uniform();
    option.shrink_cost = 3 * random.uniform();
    const int replicas = static_cast<int>(std::ssize(at(snapshot.running, job).replicas));
    for (int i = 1; i < replicas && items < 5 && random.below(3) == 0; ++i, ++items)
      option.sheddable.push_back(i);
    options.push_back(option);
  }
  return options;
}

TEST(FindVictims, CostsTheLeastOfAllSetsThatMakeRoomAndEvictsNobodyInVain) {
  constexpr std::uint64_t kStates = 20'000;
  int with_victims = 0;
  double gap_max = 0;
  double gap_sum = 0;
  for (std::uint64_t seed = 0; seed < kStates; ++seed) {
    RandomSequence random(seed);
    const ClusterSnapshot snapshot = random_snapshot(random, 6, random_int(random, 4, 9));
    const FreeCapacity free(snapshot);
    const JobRequest job = random_gang(random);
    const GangSize size = smallest_size(job);
    const std::vector<VictimOption> options = random_options(random, snapshot);
    const auto found = find_victims(free, {job, size, kWeights}, options);
    VictimTrial trial(snapshot, job, size, options);
    const double least = trial.least_cost();
    ASSERT_EQ(found.has_value(), least < std::numeric_limits<double>::infinity())
        << "seed " << seed;
    if (!found) continue;
    const std::uint32_t set = trial.set_of(*found);
    ASSERT_NEAR(trial.cost_of(set), found->cost, 1e-9) << "seed " << seed;
    ASSERT_EQ(placement_fault(trial.freed(set), job, size, found->placement.replicas), "")
        << "seed " << seed;
    for (std::uint32_t left = set; left != 0; left &= left - 1)
      ASSERT_FALSE(trial.fits(set & ~(left & (~left + 1)))) << "seed " << seed;
    if (set == 0) continue;
    ++with_victims;
    const double gap = least > 0 ? found->cost / least - 1 : found->cost;
    gap_max = std::max(gap_max, gap);
    gap_sum += gap;
    ASSERT_EQ(find_victims(free, {job, size, kWeights}, options)->victims, found->victims);
  }
  RecordProperty("states_with_victims", with_victims);
  RecordProperty("worst_gap", std::to_string(gap_max));
  EXPECT_GT(with_victims, 1500);
  EXPECT_LE(gap_max, 1e-6);
  EXPECT_LE(gap_sum, 1e-6);
}

TEST(FindVictims, MakesRoomForTheReplicasThatADegradedGangLacks) {
  int with_victims = 0;
  for (std::uint64_t seed = 0; seed < 10'000; ++seed) {
    RandomSequence random(seed);
    ClusterSnapshot snapshot = random_snapshot(random, 6, random_int(random, 0, 3));
    const JobRequest job = random_gang(random);
    const GangSize size = smallest_size(job);
    const auto whole = place_gang(FreeCapacity(snapshot), {job, size, kWeights});
    if (!whole) continue;
    // Others have taken the places of the replicas that it lost.
    RunningJob gang{.request = job};
    RunningJob other{.request = job};
    for (const ReplicaPlacement& replica : whole->replicas)
      (random.below(2) == 0 ? gang : other).replicas.push_back(replica);
    snapshot.running.push_back(other);
    std::vector<VictimOption> options = random_options(random, snapshot);
    snapshot.running.push_back(gang);
    if (random.below(2) == 0) snapshot.nodes[0].health = NodeHealth::kFailed;
    const auto found =
        find_victims(FreeCapacity(snapshot), {job, size, kWeights, gang.replicas}, options);
    VictimTrial trial(snapshot, job, size, options, gang.replicas);
    const double least = trial.least_cost();
    ASSERT_EQ(found.has_value(), least < std::numeric_limits<double>::infinity())
        << "seed " << seed;
    if (!found) continue;
    const std::uint32_t set = trial.set_of(*found);
    ASSERT_NEAR(found->cost, least, 1e-9) << "seed " << seed;
    ASSERT_EQ(
        placement_fault(trial.freed(set), job, size, found->placement.replicas, gang.replicas), "")
        << "seed " << seed;
    for (std::uint32_t left = set; left != 0; left &= left - 1)
      ASSERT_FALSE(trial.fits(set & ~(left & (~left + 1)))) << "seed " << seed;
    with_victims += set != 0 ? 1 : 0;
  }
  EXPECT_GT(with_victims, 300);
}

ClusterSnapshot nodes_with_8_devices(int nodes, int leaf_nodes) {
  ClusterSnapshot snapshot;
  for (int i = 0; i < nodes; ++i)
    snapshot.nodes.push_back({.device_type = "A", .devices = 8, .leaf = i / leaf_nodes});
  return snapshot;
}

void run_job(ClusterSnapshot& snapshot, const std::vector<ReplicaPlacement>& replicas,
             int devices) {
  RunningJob job;
  job.request.roles.push_back({.devices = devices});
  job.replicas = replicas;
  snapshot.running.push_back(job);
}

// Source: Kueue, issue 5243.
TEST(FindVictims, FreesAllDevicesOfOneNodeForAReplicaThatNeedsThemAll) {
  ClusterSnapshot snapshot = nodes_with_8_devices(4, 4);
  std::vector<VictimOption> options;
  // On each node four jobs of two devices; the cheapest four are on four nodes.
  for (int node = 0; node < 4; ++node)
    for (int i = 0; i < 4; ++i) {
      run_job(snapshot, {{0, node, 0b11U << (2 * i)}}, 2);
      options.push_back({.job = 4 * node + i, .eviction_cost = i == 0 ? 1.0 : 10.0 + node});
    }
  JobRequest job;
  job.roles.push_back({.devices = 8});
  const auto found = find_victims(FreeCapacity(snapshot), {job, {1}, kWeights}, options);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->victims, (std::vector<Victim>{{0}, {1}, {2}, {3}}));
  EXPECT_EQ(found->placement.replicas, (std::vector<ReplicaPlacement>{{0, 0, 0xff}}));
  EXPECT_DOUBLE_EQ(found->cost, 31);
}

// Source: Volcano, issue 4374.
TEST(FindVictims, MakesRoomBelowOneLeafForAGangThatMustNotSpanTwo) {
  ClusterSnapshot snapshot = nodes_with_8_devices(8, 4);
  std::vector<VictimOption> options;
  // One gang spans both leaves and is the cheapest; below leaf 1 two more jobs stand.
  run_job(snapshot, {{0, 0, 0xff}, {0, 1, 0xff}, {0, 4, 0xff}}, 8);
  for (const int node : {2, 3, 5, 6, 7})
    run_job(snapshot, {{0, node, 0xff}}, 8);
  for (int job = 0; job < 6; ++job)
    options.push_back({.job = job, .eviction_cost = job == 0 ? 1.0 : 4.0 + job});
  JobRequest job;
  job.roles.push_back({.replicas_min = 3, .replicas_max = 3, .devices = 8});
  job.topology.required = TopologyLevel::kLeaf;
  const auto found = find_victims(FreeCapacity(snapshot), {job, {3}, kWeights}, options);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->placement.level, TopologyLevel::kLeaf);
  EXPECT_EQ(found->victims, (std::vector<Victim>{{0}, {1}}));
  EXPECT_DOUBLE_EQ(found->cost, 6);
}

TEST(FindVictims, EvictsNobodyWhereTheWholeGangWouldNotFitAfterwards) {
  ClusterSnapshot snapshot = nodes_with_8_devices(4, 2);
  run_job(snapshot, {{0, 0, 0xff}}, 8);
  run_job(snapshot, {{0, 2, 0xff}}, 8);  // may not be evicted
  JobRequest job;
  job.roles.push_back({.replicas_min = 3, .replicas_max = 3, .devices = 8});
  job.topology.required = TopologyLevel::kLeaf;
  const std::vector<VictimOption> options = {{.job = 0, .eviction_cost = 1}};
  EXPECT_FALSE(find_victims(FreeCapacity(snapshot), {job, {3}, kWeights}, options));
}

TEST(FindVictims, NoLossOutweighsARankAndEqualRanksAreToldApartByTheirLoss) {
  ClusterSnapshot snapshot = nodes_with_8_devices(3, 3);
  for (int node = 0; node < 3; ++node)
    run_job(snapshot, {{0, node, 0xff}}, 8);
  JobRequest job;
  job.roles.push_back({.devices = 8});
  const std::vector<VictimOption> options = {
      {.job = 0, .eviction_cost = 1, .eviction_rank = 3'000'000},
      {.job = 1, .eviction_cost = 1e9 + 1, .eviction_rank = 2'999'999},
      {.job = 2, .eviction_cost = 1e9 - 1, .eviction_rank = 2'999'999}};
  const auto found = find_victims(FreeCapacity(snapshot), {job, {1}, kWeights}, options);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->victims, (std::vector<Victim>{{2, true, {}}}));
  EXPECT_DOUBLE_EQ(found->rank, 2'999'999);
}

TEST(RisingOrder, IsThatOfAStableSortFromBehindHoweverFarItIsAskedFor) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    RandomSequence random(seed);
    std::vector<VictimCost> costs;
    for (std::size_t i = random.below(1000); i > 0; --i)
      costs.push_back(
          {static_cast<double>(random.below(2)), static_cast<double>(random.below(50))});
    std::vector<int> sorted(costs.size());
    std::iota(sorted.begin(), sorted.end(), 0);
    std::stable_sort(sorted.begin(), sorted.end(),
                     [&](int a, int b) { return at(costs, a) > at(costs, b); });
    std::reverse(sorted.begin(), sorted.end());
    RisingOrder order(costs);
    ASSERT_EQ(order.size(), sorted.size());
    for (std::size_t rank = 0; rank < sorted.size(); rank += 1 + random.below(9))
      ASSERT_EQ(order.item(rank), sorted[rank]) << "seed " << seed;
  }
}

TEST(FindVictims, LetsAnElasticJobShrinkInsteadOfEvictingIt) {
  ClusterSnapshot snapshot = nodes_with_8_devices(2, 2);
  run_job(snapshot, {{0, 0, 0xff}, {0, 1, 0xff}}, 8);
  JobRequest job;
  job.roles.push_back({.devices = 8});
  const std::vector<VictimOption> options = {
      {.job = 0, .eviction_cost = 10, .sheddable = {1}, .shrink_cost = 1}};
  const auto found = find_victims(FreeCapacity(snapshot), {job, {1}, kWeights}, options);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->victims, (std::vector<Victim>{{0, false, {1}}}));
  EXPECT_EQ(found->placement.replicas[0].node, 1);
}

// Nodes of 8 devices in leaves of 32, filled by jobs of 1, 2 or 4 devices or of 8 on each of up to
// 16 nodes; all of them may be evicted.
ClusterSnapshot full_cluster(int nodes, RandomSequence& random) {
  ClusterSnapshot snapshot;
  for (int i = 0; i < nodes; ++i)
    snapshot.nodes.push_back({.name = "n" + std::to_string(i),
                              .device_type = "A",
                              .devices = 8,
                              .leaf = i / 32,
                              .group = i / 256});
  for (int node = 0; node < nodes;) {
    RunningJob job;
    if (random.below(2) == 0) {
      job.request.roles = {{.devices = 8}};
      for (int count = 1 << random.below(5); count > 0 && node < nodes; --count, ++node)
        job.replicas.push_back({0, node, 0xff});
      snapshot.running.push_back(job);
      continue;
    }
    const int size = 1 << random.below(3);
    job.request.roles = {{.devices = size}};
    for (int first = 0; first < 8; first += size) {
      job.replicas = {{0, node, ((1U << size) - 1) << first}};
      snapshot.running.push_back(job);
    }
    ++node;
  }
  return snapshot;
}

// A guard of its time that does not depend on the machine.
TEST(FindVictims, MovesEachReplicaOfALargeClusterAFewTimesAtMost) {
  for (const int replicas : {8, 64, 256})
    for (std::uint64_t seed = 0; seed < 4; ++seed) {
      RandomSequence random(seed);
      const ClusterSnapshot snapshot = full_cluster(1024, random);
      std::vector<VictimOption> options;
      long long running = 0;
      for (int job = 0; job < std::ssize(snapshot.running); ++job) {
        options.push_back({.job = job, .eviction_cost = 1 + 100 * random.uniform()});
        running += std::ssize(at(snapshot.running, job).replicas);
      }
      JobRequest job;
      job.roles = {{.replicas_min = replicas, .replicas_max = replicas, .devices = 8}};
      const auto one = find_victims(FreeCapacity(snapshot), {job, {replicas}, kWeights}, options);
      ASSERT_TRUE(one);
      EXPECT_LE(one->trial_moves, kMovesOfEach * running) << "seed " << seed;
      job.roles.push_back({.replicas_min = replicas, .replicas_max = replicas, .devices = 3});
      const auto two =
          find_victims(FreeCapacity(snapshot), {job, {replicas, replicas}, kWeights}, options);
      ASSERT_TRUE(two);
      EXPECT_LE(two->trial_moves, kMovesOfEach * running) << "seed " << seed;
    }
}

}  // namespace
}  // namespace regatta::sched
