#include "regatta/network/heal/internal/tables.h"

#include <random>

#include <gmock/gmock.h>

#include "regatta/network/heal/test_fabric.h"

namespace regatta::heal {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

TEST(Tables, ChangeOnlyTheRoutesThatHaveTo) {
  const TestFabricPaths fabric = TestFabricPaths::two_tiers(4, 3);
  Tables tables(fabric.paths);
  const std::vector<Fault> faults = {fabric.broken_link("spine0", "leaf2")};
  const auto changes = tables.changes(decide(fabric.paths, faults));
  ASSERT_THAT(changes, SizeIs(3));
  for (const RouteChange& change : changes) {
    EXPECT_EQ(change.leaf, fabric.node("leaf2"));
    EXPECT_THAT(change.withdrawn, SizeIs(1));
    EXPECT_THAT(change.returned, IsEmpty());
    EXPECT_EQ(
        moved_share(tables.parts(change.node, change.leaf), change.parts, hops_of(change.parts)),
        0);
  }
  tables.apply(changes);
  EXPECT_THAT(tables.changes(decide(fabric.paths, faults)), IsEmpty());
}

TEST(Tables, ComeBackToWhatTheyAreMeantToBe) {
  const TestFabricPaths fabric = TestFabricPaths::three_tiers();
  std::mt19937 random(9);
  Tables tables(fabric.paths);
  for (int i = 0; i < 200; ++i) {
    std::vector<Fault> faults;
    for (auto count = random() % 5; count > 0; --count)
      faults.push_back({Place::kLink,
                        static_cast<std::uint32_t>(random() % fabric.paths.end_of.size()),
                        {},
                        Harm::kBlackHole});
    tables.apply(tables.changes(decide(fabric.paths, faults)));
  }
  tables.apply(tables.changes({}));
  for (const NodeId leaf : fabric.paths.routes.leaves())
    for (const NodeId node : fabric.paths.switches[0])
      EXPECT_EQ(tables.parts(node, leaf), even_parts(fabric.paths.routes.next_hops(node, leaf)));
}

TEST(Tables, TellWhatWasReturned) {
  const TestFabricPaths fabric = TestFabricPaths::two_tiers(2, 2);
  Tables tables(fabric.paths);
  const std::vector<Fault> faults = {fabric.broken_link("leaf0", "spine0")};
  tables.apply(tables.changes(decide(fabric.paths, faults)));
  const auto changes = tables.changes({});
  ASSERT_THAT(changes, SizeIs(1));
  EXPECT_THAT(changes[0].returned, ElementsAre(fabric.link("leaf0", "spine0")));
  EXPECT_THAT(changes[0].withdrawn, IsEmpty());
}

// A healer that replaces a killed one finds its withdrawals and decides the same.
TEST(Tables, ExplainWhatIsInstalledByFaults) {
  const TestFabricPaths fabric = TestFabricPaths::two_tiers(3, 3);
  Tables before(fabric.paths);
  const std::vector<Fault> faults = {fabric.broken_link("leaf0", "spine1"),
                                     fabric.broken_link("spine0", "leaf2")};
  const auto changes = before.changes(decide(fabric.paths, faults));
  before.apply(changes);
  Tables after(fabric.paths);
  for (const RouteChange& change : changes)
    after.set(change.node, change.leaf, change.parts);
  const auto found = after.missing();
  EXPECT_THAT(found, SizeIs(4));  // leaf0 towards leaf1, and twice towards leaf2; leaf1 towards it
  EXPECT_THAT(after.changes(decide(fabric.paths, found)), IsEmpty());
  EXPECT_THAT(after.changes({}), SizeIs(3));
}

TEST(Tables, KnowWhichRoutesUseALink) {
  const TestFabricPaths fabric = TestFabricPaths::two_tiers(3, 2);
  Tables tables(fabric.paths);
  const std::uint32_t up = fabric.link("leaf0", "spine0");
  EXPECT_THAT(tables.through(fabric.node("leaf0"), up), SizeIs(2));
  const std::vector<Fault> faults = {fabric.broken_link("spine0", "leaf2")};
  tables.apply(tables.changes(decide(fabric.paths, faults)));
  const auto left = tables.through(fabric.node("leaf0"), up);
  ASSERT_THAT(left, SizeIs(1));
  EXPECT_EQ(left[0].leaf, fabric.node("leaf1"));
}

}  // namespace
}  // namespace regatta::heal
