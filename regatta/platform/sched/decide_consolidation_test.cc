// Jobs that move where nothing waits, so that whole nodes and leaves become free.
#include <bit>
#include <map>
#include <string>

#include <gtest/gtest.h>

#include "regatta/platform/packing/random_sequence.h"
#include "regatta/platform/sched/decide.h"
#include "regatta/platform/sched/internal/free_capacity.h"
#include "regatta/platform/sched/test_states.h"

namespace regatta::sched {
namespace {

SchedulingPolicy consolidating(int moves) {
  SchedulingPolicy policy = *find_scheduling_policy("regatta");
  policy.consolidation = {.moves = moves, .node = {600}, .leaf = {600}, .rest = {3600}};
  return policy;
}

SchedulingDecision decided(const ClusterSnapshot& snapshot, const SchedulingPolicy& policy) {
  const auto decision = decide(snapshot, JobQueue{}, policy);
  EXPECT_TRUE(decision) << decision.error().message;
  return decision ? *decision : SchedulingDecision{};
}

RunningJob part_of_node(const std::string& name, int node, std::uint32_t devices) {
  RunningJob job = running(gang(name, 1, std::popcount(devices)), {node});
  job.replicas[0].devices = devices;
  job.request.run_time.median = {36'000};
  return job;
}

struct WholeDomains {
  int nodes = 0;
  int leaves = 0;
};

WholeDomains whole_domains(const ClusterSnapshot& snapshot) {
  const FreeCapacity free(snapshot);
  WholeDomains count;
  for (const NodeRange& leaf : free.domains_of(TopologyLevel::kLeaf)) {
    int whole = 0;
    for (int i = leaf.begin; i < leaf.end; ++i)
      whole += std::popcount(free.free(at(free.domains().order, i)).whole_free) == 8 ? 1 : 0;
    count.nodes += whole;
    count.leaves += whole == leaf.end - leaf.begin ? 1 : 0;
  }
  return count;
}

TEST(Consolidation, MovesASmallJobSoThatItsNodeIsWhollyFree) {
  ClusterSnapshot snapshot = cluster_of(4);
  snapshot.running = {part_of_node("a", 0, 0b11), part_of_node("b", 1, 0b1111)};
  const auto decision = decided(snapshot, consolidating(2));
  ASSERT_EQ(decision.actions.size(), 1U);
  EXPECT_EQ(decision.actions[0].kind, ActionKind::kMove);
  EXPECT_EQ(decision.actions[0].job, "a") << "it loses less than b";
  EXPECT_EQ(decision.actions[0].reason,
            "continues from its checkpoint on 2 devices on node n1, so that node n0 becomes wholly "
            "free; that is worth 1.33 h of a device, and moving loses 5.33 min");
}

TEST(Consolidation, NeedsABudgetAndAGainAboveTheLoss) {
  ClusterSnapshot snapshot = cluster_of(4);
  snapshot.running = {part_of_node("a", 0, 0b11), part_of_node("b", 1, 0b1111)};
  EXPECT_TRUE(decided(snapshot, consolidating(0)).actions.empty());
  SchedulingPolicy dear = consolidating(2);
  dear.consolidation.node = dear.consolidation.leaf = {30};  // 4 min of a device; a loses 5.3
  EXPECT_TRUE(decided(snapshot, dear).actions.empty());
}

TEST(Consolidation, LeavesJobsThatStartedOrMovedShortlyBeforeAndThoseThatMayNotMove) {
  ClusterSnapshot snapshot = cluster_of(4);
  snapshot.running = {part_of_node("a", 0, 0b11), part_of_node("b", 1, 0b1111)};
  SchedulingPolicy policy = consolidating(2);
  policy.consolidation.rest = {3601};
  EXPECT_TRUE(decided(snapshot, policy).actions.empty());
  for (RunningJob& job : snapshot.running)
    job.request.is_preemptible = false;
  EXPECT_TRUE(decided(snapshot, consolidating(2)).actions.empty());
}

TEST(Consolidation, EmptiesALeafWhereAWholeNodeOfABegunLeafIsFree) {
  ClusterSnapshot snapshot = cluster_of(8);
  RunningJob wide = running(gang("wide", 3, 8), {4, 5, 6});
  wide.started = snapshot.now;  // rests
  snapshot.running = {part_of_node("whole", 0, 0xff), wide};
  const auto decision = decided(snapshot, consolidating(2));
  ASSERT_EQ(decision.actions.size(), 1U);
  EXPECT_EQ(nodes_of(decision.actions[0]), std::vector<int>{7});
  EXPECT_NE(decision.actions[0].reason.find("so that leaf 0 becomes wholly free"),
            std::string::npos);
}

TEST(Consolidation, StandsBackWhileAGangWaits) {
  ClusterSnapshot snapshot = cluster_of(4);
  snapshot.running = {part_of_node("a", 0, 0b11), part_of_node("b", 1, 0b1111)};
  snapshot.running[0].request.priority = snapshot.running[1].request.priority = 5;
  snapshot.nodes[2].health = snapshot.nodes[3].health = NodeHealth::kFailed;
  JobQueue queue;
  queue.jobs = {pending(gang("waits", 2, 8))};
  SchedulingPolicy policy = consolidating(2);
  policy.moves = 0;
  const auto decision = decide(snapshot, queue, policy);
  ASSERT_TRUE(decision);
  EXPECT_TRUE(decision->actions.empty());
}

// 6 nodes in leaves of 2 with small jobs at random, which have run for an hour.
ClusterSnapshot scattered(std::uint64_t seed) {
  packing::RandomSequence random(seed);
  ClusterSnapshot snapshot = cluster_of(6, 2);
  for (int node = 0; node < 6; ++node) {
    std::uint32_t device = 0;
    while (device < 8 && random.below(3) != 0) {
      const auto width = static_cast<std::uint32_t>(1 + random.below(3));
      if (device + width > 8) break;
      RunningJob job = part_of_node("j" + std::to_string(snapshot.running.size()), node,
                                    ((1U << width) - 1U) << device);
      job.request.is_preemptible = random.below(5) != 0;
      job.checkpointed = Seconds{99'400.0 + 100.0 * static_cast<double>(random.below(7))};
      snapshot.running.push_back(job);
      device += width + static_cast<std::uint32_t>(random.below(2));
    }
  }
  return snapshot;
}

TEST(Consolidation, NeverLeavesFewerWholeNodesOrLeavesMovesWithinItsBudgetAndInNoCircles) {
  int moved = 0;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    ClusterSnapshot snapshot = scattered(seed);
    const SchedulingPolicy policy = consolidating(3);
    std::map<std::string, int> moves_of;
    for (int step = 0; step < 5; ++step) {
      const WholeDomains before = whole_domains(snapshot);
      const SchedulingDecision decision = decided(snapshot, policy);
      const SchedulingDecision again = decided(snapshot, policy);
      ASSERT_EQ(again.actions.size(), decision.actions.size());
      for (std::size_t i = 0; i < decision.actions.size(); ++i)
        EXPECT_EQ(again.actions[i].replicas, decision.actions[i].replicas);
      EXPECT_LE(decision.actions.size(), 3U);
      for (const SchedulingAction& action : decision.actions)
        EXPECT_EQ(++moves_of[action.job], 1) << "within the time of rest";
      moved += static_cast<int>(decision.actions.size());
      JobQueue queue;
      apply_decision(decision, snapshot, queue);
      ASSERT_TRUE(check_snapshot(snapshot));
      const WholeDomains after = whole_domains(snapshot);
      EXPECT_GE(after.nodes, before.nodes);
      EXPECT_GE(after.leaves, before.leaves);
      if (!decision.actions.empty()) {
        EXPECT_GT(after.nodes + after.leaves, before.nodes + before.leaves);
      }
      snapshot.now += Seconds{600};
    }
  }
  EXPECT_GT(moved, 100);
}

}  // namespace
}  // namespace regatta::sched
