#include "regatta/network/heal/internal/decide.h"

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <utility>

#include <gmock/gmock.h>

#include "regatta/network/heal/internal/path_losses.h"
#include "regatta/network/heal/test_fabric.h"

namespace regatta::heal {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(Decide, WithdrawsNothingWhenNothingIsBroken) {
  const TestFabricPaths fabric = TestFabricPaths::three_tiers();
  const Decision decision = decide(fabric.paths, {});
  EXPECT_THAT(decision.withdrawals, IsEmpty());
  EXPECT_THAT(decision.refusals, IsEmpty());
}

TEST(Decide, WithdrawsABrokenUplinkAtItsLeafOnly) {
  const TestFabricPaths fabric = TestFabricPaths::two_tiers(3, 3);
  const std::vector<Fault> faults = {fabric.broken_link("leaf0", "spine1")};
  const Decision decision = decide(fabric.paths, faults);
  const std::vector<std::uint32_t> left = {fabric.link("leaf0", "spine0"),
                                           fabric.link("leaf0", "spine2")};
  EXPECT_THAT(decision.withdrawals,
              ElementsAre(Withdrawal{fabric.node("leaf0"), fabric.node("leaf1"), left},
                          Withdrawal{fabric.node("leaf0"), fabric.node("leaf2"), left}));
  EXPECT_THAT(decision.refusals, IsEmpty());
}

TEST(Decide, WithdrawsABrokenDownlinkAtAllLeavesForWhatLiesBelowItOnly) {
  const TestFabricPaths fabric = TestFabricPaths::two_tiers(4, 2);
  const std::vector<Fault> faults = {fabric.broken_link("spine0", "leaf2")};
  const Decision decision = decide(fabric.paths, faults);
  std::vector<Withdrawal> expected;
  for (const std::string from : {"leaf0", "leaf1", "leaf3"})
    expected.push_back({fabric.node(from), fabric.node("leaf2"), {fabric.link(from, "spine1")}});
  EXPECT_EQ(decision.withdrawals, expected);
  EXPECT_THAT(decision.refusals, IsEmpty());
}

TEST(Decide, WithdrawsABrokenSwitchEverywhere) {
  const TestFabricPaths fabric = TestFabricPaths::two_tiers(4, 3);
  const std::vector<Fault> faults = {fabric.broken_switch("spine2")};
  const Decision decision = decide(fabric.paths, faults);
  EXPECT_EQ(decision.withdrawals.size(), 12U);
  for (const Withdrawal& withdrawal : decision.withdrawals)
    for (const std::uint32_t hop : withdrawal.left)
      EXPECT_NE(fabric.paths.end_of[hop], fabric.node("spine2"));
}

TEST(Decide, WithdrawsAHopForOneLeafOnly) {
  const TestFabricPaths fabric = TestFabricPaths::two_tiers(3, 2);
  const std::vector<Fault> faults = {
      {Place::kHop, fabric.link("leaf0", "spine0"), fabric.node("leaf2"), Harm::kBlackHole}};
  EXPECT_THAT(decide(fabric.paths, faults).withdrawals,
              ElementsAre(Withdrawal{
                  fabric.node("leaf0"), fabric.node("leaf2"), {fabric.link("leaf0", "spine1")}}));
}

TEST(Decide, LeavesThoseAboveASpineAloneWhenItsPathsUpAreLeft) {
  const TestFabricPaths fabric = TestFabricPaths::three_tiers();
  // Each spine has two super-spines; one goes.
  const NodeId spine = fabric.node("spine0");
  std::uint32_t up = 0;
  for (std::uint32_t link = 0; link < fabric.paths.end_of.size(); ++link)
    if (fabric.paths.start_of[link] == spine &&
        fabric.graph.nodes[fabric.paths.end_of[link].index()].kind == topo::NodeKind::kSuperSpine)
      up = link;
  const std::vector<Fault> faults = {{Place::kLink, up, {}, Harm::kBlackHole}};
  const Decision decision = decide(fabric.paths, faults);
  EXPECT_FALSE(decision.withdrawals.empty());
  for (const Withdrawal& withdrawal : decision.withdrawals)
    EXPECT_EQ(withdrawal.node, spine);
}

TEST(Decide, TakesNoSpineThatHasNoPathOn) {
  const TestFabricPaths fabric = TestFabricPaths::three_tiers();
  const NodeId spine = fabric.node("spine0");
  std::vector<Fault> faults;
  for (std::uint32_t link = 0; link < fabric.paths.end_of.size(); ++link)
    if (fabric.paths.start_of[link] == spine &&
        fabric.graph.nodes[fabric.paths.end_of[link].index()].kind == topo::NodeKind::kSuperSpine)
      faults.push_back({Place::kLink, link, {}, Harm::kBlackHole});
  const Decision decision = decide(fabric.paths, faults);
  // The two leaves of its group for the six leaves elsewhere; for each other the spine still
  // serves.
  std::set<std::pair<int, int>> ends;
  for (const Withdrawal& withdrawal : decision.withdrawals) {
    EXPECT_NE(withdrawal.node, spine) << "all its paths are equally broken";
    ends.insert({withdrawal.node.value, withdrawal.leaf.value});
    EXPECT_EQ(withdrawal.left.size(), 2U);
  }
  EXPECT_EQ(ends.size(), 12U);
  EXPECT_THAT(decision.refusals, IsEmpty());
}

TEST(Decide, RefusesToCutALeafOffAndSaysWhichFaultItKeeps) {
  const TestFabricPaths fabric = TestFabricPaths::two_tiers(2, 2);
  const std::vector<Fault> faults = {fabric.broken_link("leaf0", "spine0"),
                                     fabric.broken_link("leaf0", "spine1")};
  const Decision decision = decide(fabric.paths, faults);
  // Both broken paths stay in use: whichever is repaired first carries traffic at once.
  EXPECT_THAT(decision.withdrawals, IsEmpty());
  EXPECT_THAT(decision.refusals,
              ElementsAre(RefusedWithdrawal{fabric.node("leaf0"), fabric.node("leaf1"), 1}));
}

TEST(Decide, GoesBackToALossyPathWhenTheLastOneIsDead) {
  const TestFabricPaths fabric = TestFabricPaths::two_tiers(2, 2);
  const std::vector<Fault> faults = {fabric.broken_link("leaf0", "spine0", Harm::kLoss),
                                     fabric.broken_link("leaf0", "spine1", Harm::kNoCarrier)};
  const Decision decision = decide(fabric.paths, faults);
  EXPECT_THAT(decision.withdrawals,
              ElementsAre(Withdrawal{
                  fabric.node("leaf0"), fabric.node("leaf1"), {fabric.link("leaf0", "spine0")}}));
  EXPECT_THAT(decision.refusals,
              ElementsAre(RefusedWithdrawal{fabric.node("leaf0"), fabric.node("leaf1"), 0}));
}

// A pair lost more with a healer than without one, until the second fault was named: 1.3 s.
TEST(Decide, TellsWhichFaultKeepsOutPathsThatLoseLessThanThoseInUse) {
  const TestFabricPaths fabric = TestFabricPaths::two_tiers(3, 2);
  const std::vector<Fault> faults = {fabric.broken_link("leaf2", "spine0"),
                                     fabric.broken_link("leaf0", "spine0", Harm::kLoss)};
  PathLosses losses(fabric.paths);
  const diag::LinkLoss used{.link = fabric.link("spine1", "leaf1"), .now = 0.2, .left = 0.1};
  const std::uint32_t held = fabric.link("leaf0", "spine0");
  const diag::LinkLoss black_hole{.link = fabric.link("leaf2", "spine0"), .now = 1, .left = 1};
  losses.set(std::vector{used, black_hole, {.link = held, .left = 0.01}}, Seconds{1});
  const std::vector<CostlyFault> costly = decide(fabric.paths, faults, &losses).costly;
  ASSERT_EQ(costly.size(), 1U);
  EXPECT_EQ(costly[0].fault, 1U);
  EXPECT_NEAR(costly[0].in_use, 0.2, 1e-9);
  losses.set(std::vector{used, black_hole, {.link = held, .now = 0.3, .left = 0.3}}, Seconds{1});
  EXPECT_THAT(decide(fabric.paths, faults, &losses).costly, IsEmpty());
  losses.set(std::vector{used, black_hole, {.link = held, .is_blind = true}}, Seconds{1});
  EXPECT_THAT(decide(fabric.paths, faults, &losses).costly, IsEmpty());
  EXPECT_THAT(decide(fabric.paths, faults).costly, IsEmpty());
}

TEST(Decide, KeepsAllPathsToASwitchThatNoneLeadsAround) {
  const TestFabricPaths fabric = TestFabricPaths::two_tiers(3, 2);
  const std::vector<Fault> faults = {fabric.broken_switch("leaf1")};
  const Decision decision = decide(fabric.paths, faults);
  EXPECT_THAT(decision.withdrawals, IsEmpty());
  EXPECT_THAT(decision.refusals,
              ElementsAre(RefusedWithdrawal{fabric.node("leaf0"), fabric.node("leaf1"), 0},
                          RefusedWithdrawal{fabric.node("leaf2"), fabric.node("leaf1"), 0}));
}

TEST(Decide, NamesFaultsAsPeopleDo) {
  const TestFabricPaths fabric = TestFabricPaths::two_tiers(3, 2);
  EXPECT_EQ(to_string(fabric.graph, fabric.broken_link("spine1", "leaf0")),
            "leaf0-spine1 from spine1 to leaf0");
  EXPECT_EQ(to_string(fabric.graph, fabric.broken_switch("spine1")), "switch spine1");
  EXPECT_EQ(to_string(fabric.graph, {Place::kHop, fabric.link("leaf0", "spine1"),
                                     fabric.node("leaf2"), Harm::kBlackHole}),
            "leaf0-spine1 from leaf0 towards leaf2");
}

// Every path from a leaf to another by what decide() leaves, walked; the harm of the worst fault on
// the best and on the worst of them; -1: none on it.
class Walk {
 public:
  Walk(const TestFabricPaths& fabric, const std::vector<Fault>& faults)
      : fabric_(fabric), faults_(faults) {
    for (Withdrawal& one : decide(fabric.paths, faults).withdrawals)
      left_[{one.node, one.leaf}] = std::move(one.left);
  }

  std::pair<int, int> decided(NodeId from, NodeId to) {
    return walk(from, to, -1, 0, [&](NodeId node) {
      const auto found = left_.find({node, to});
      const auto all = fabric_.paths.routes.next_hops(node, to);
      return found == left_.end() ? std::vector(all.begin(), all.end()) : found->second;
    });
  }
  std::pair<int, int> possible(NodeId from, NodeId to) {
    return walk(from, to, -1, 0, [&](NodeId node) {
      const auto all = fabric_.paths.routes.next_hops(node, to);
      return std::vector(all.begin(), all.end());
    });
  }

 private:
  template <typename Hops>
  std::pair<int, int> walk(NodeId node, NodeId to, int worst, int depth, const Hops& hops) {
    EXPECT_LT(depth, 5) << "a loop";
    if (node == to || depth >= 5) return {worst, worst};
    std::pair<int, int> range = {100, -1};
    const auto next = hops(node);
    EXPECT_FALSE(next.empty()) << "a partition";
    for (const std::uint32_t hop : next) {
      int harm = worst;
      for (const Fault& fault : faults_) {
        const bool meets =
            fault.place == Place::kSwitch
                ? fault.node == fabric_.paths.end_of[hop]
                : fault.link == hop && (fault.place == Place::kLink || fault.node == to);
        if (meets) harm = std::max(harm, static_cast<int>(fault.harm));
      }
      const auto ends = walk(fabric_.paths.end_of[hop], to, harm, depth + 1, hops);
      range = {std::min(range.first, ends.first), std::max(range.second, ends.second)};
    }
    return range;
  }

  const TestFabricPaths& fabric_;
  const std::vector<Fault>& faults_;
  std::map<std::pair<NodeId, NodeId>, std::vector<std::uint32_t>> left_;
};

std::vector<Fault> random_faults(const TestFabricPaths& fabric, std::mt19937& random) {
  std::vector<Fault> faults;
  const auto& leaves = fabric.paths.routes.leaves();
  for (auto count = random() % 12; count > 0; --count) {
    Fault fault;
    fault.place = static_cast<Place>(random() % 3);
    fault.harm = static_cast<Harm>(random() % 3);
    if (fault.place != Place::kSwitch)
      fault.link = static_cast<std::uint32_t>(random() % fabric.paths.end_of.size());
    if (fault.place == Place::kHop) fault.node = leaves[random() % leaves.size()];
    if (fault.place == Place::kSwitch)
      fault.node = NodeId{static_cast<int>(random() % fabric.graph.nodes.size())};
    const bool is_known =
        std::ranges::any_of(faults, [&](const Fault& one) { return one.is_at(fault); });
    if (!is_known) faults.push_back(fault);
  }
  return faults;
}

TEST(Decide, NeverPartitionsNorLoopsAndUsesOnlyTheBestPathsThereAre) {
  std::mt19937 random(1);
  for (int i = 0; i < 400; ++i) {
    const TestFabricPaths fabric =
        i % 2 == 0 ? TestFabricPaths::two_tiers(4, 3) : TestFabricPaths::three_tiers();
    const std::vector<Fault> faults = random_faults(fabric, random);
    Walk walk(fabric, faults);
    for (const NodeId from : fabric.paths.routes.leaves()) {
      for (const NodeId to : fabric.paths.routes.leaves()) {
        if (from == to) continue;
        const auto [best, worst] = walk.decided(from, to);
        EXPECT_EQ(best, walk.possible(from, to).first) << "try " << i;
        EXPECT_EQ(worst, best) << "try " << i;
      }
    }
  }
}

}  // namespace
}  // namespace regatta::heal
