#include "regatta/platform/sched/internal/pair_shares.h"

#include <cstdint>
#include <map>

#include <gtest/gtest.h>

#include "regatta/platform/sched/internal/node_fit.h"
#include "regatta/platform/sched/internal/test_random_gangs.h"

namespace regatta::sched {
namespace {

constexpr DomainRef kWholeCluster{TopologyLevel::kCluster, 0};

// A gang of two roles of whole devices without subgroups.
JobRequest random_pair(RandomSequence& random) {
  JobRequest job;
  while (job.roles.size() < 2) {
    Role role = random_role(random, 4);
    role.subgroup_replicas = 1;
    if (!role.is_sliced()) job.roles.push_back(role);
  }
  return job;
}

// Why the shares are no placement; empty where they are one.
std::string shares_fault(const GangTask& task, const GangShares& shares) {
  std::map<int, std::vector<int>> counts_at;
  for (int role = 0; role < 2; ++role) {
    int sum = 0;
    for (const NodeShare& share : at(shares, role)) {
      sum += share.replicas;
      counts_at[share.position].resize(2);
      at(counts_at[share.position], role) = share.replicas;
    }
    if (sum != at(task.size, role)) return "replicas of role " + std::to_string(role);
  }
  for (const auto& [position, counts] : counts_at) {
    const int node = at(task.free.domains().order, position);
    if (!fit_on_node(task.free.node(node), task.free.free(node), task.job.roles, counts))
      return "capacity of node " + std::to_string(node);
  }
  return {};
}

TEST(PairShares, PlacesTwoRolesWheneverATrialOfAllPlacementsDoes) {
  int fitting = 0;
  int refused = 0;
  int not_fitting = 0;
  for (std::uint64_t seed = 0; seed < 6000; ++seed) {
    RandomSequence random(seed);
    const ClusterSnapshot snapshot = random_snapshot(random, 6, random_int(random, 0, 2));
    const FreeCapacity free(snapshot);
    const JobRequest job = random_pair(random);
    const GangSize size = smallest_size(job);
    const GangTask task{free, job, size, {}, {}};
    bool is_placed = false;
    bool is_possible = false;
    for (const int type : possible_device_types(task)) {
      const PairShares pair(task, order_pair(job, 0, 1, type));
      const auto shares = pair.share_out(kWholeCluster);
      is_possible |= pair.may_hold(kWholeCluster);
      is_placed |= shares.has_value();
      if (!shares) continue;
      ASSERT_TRUE(pair.may_hold(kWholeCluster)) << "seed " << seed;
      ASSERT_EQ(shares_fault(task, *shares), "") << "seed " << seed;
    }
    ASSERT_EQ(is_placed, GangTrial(free, job, size).fits()) << "seed " << seed;
    fitting += is_placed ? 1 : 0;
    not_fitting += is_placed ? 0 : 1;
    refused += is_possible ? 0 : 1;
  }
  EXPECT_GT(fitting, 1000);
  EXPECT_GT(not_fitting, 1200);
  // The bound alone refuses nearly all that do not fit: else each would cost an exact search.
  EXPECT_GT(refused, not_fitting * 9 / 10);
  RecordProperty("refused_by_the_bound",
                 std::to_string(refused) + " of " + std::to_string(not_fitting));
}

TEST(PairShares, RefusesByTheBoundWhatFitsRoleByRoleAlone) {
  ClusterSnapshot snapshot;
  for (int i = 0; i < 512; ++i)
    snapshot.nodes.push_back(
        {.name = "n" + std::to_string(i), .device_type = "A", .devices = 8, .cpu_milli = 64'000});
  const FreeCapacity free(snapshot);
  JobRequest job;
  job.roles = {{.devices = 8, .cpu_milli = 32'000}, {.devices = 3, .cpu_milli = 8000}};
  const auto may_hold = [&](const GangSize& size) {
    return PairShares({free, job, size, {}, {}}, {0, 1, 0}).may_hold(kWholeCluster);
  };
  EXPECT_TRUE(may_hold({512, 0}));
  EXPECT_TRUE(may_hold({0, 1024}));
  EXPECT_TRUE(may_hold({256, 512}));
  EXPECT_FALSE(may_hold({256, 513}));
  EXPECT_FALSE(may_hold({257, 512}));
}

}  // namespace
}  // namespace regatta::sched
