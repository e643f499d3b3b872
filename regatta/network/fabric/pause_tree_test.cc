#include <gmock/gmock.h>

#include "regatta/network/fabric/port_pfc_watchdog.h"
#include "regatta/network/fabric/routes.h"
#include "regatta/network/fabric/test_deadlock.h"

namespace regatta::fabric {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

// 16 servers on 4 leaves of 4, 4 spines.
class PauseTreeTest : public testing::Test {
 protected:
  std::uint32_t link(const std::string& from, const std::string& to) const {
    return link_between(graph_, node_of(graph_, from), node_of(graph_, to));
  }
  std::uint32_t node(const std::string& name) const {
    return static_cast<std::uint32_t>(node_of(graph_, name).value);
  }
  topo::Graph graph_ = build_graph(TestFabric::cluster_of(16, 4, {1e9}));
};

TEST_F(PauseTreeTest, BeginAtTheNicThatLetsNothingIn) {
  const auto down = link("leaf0", "s0");
  const auto spine = link("spine1", "leaf0");
  const auto up = link("leaf2", "spine1");
  const auto nic = link("s8", "leaf2");
  const auto trees = pause_trees(graph_, {nic, down, up, spine});
  ASSERT_EQ(trees.size(), 1U);
  EXPECT_EQ(trees[0].root, node("s0"));
  EXPECT_THAT(trees[0].cycle, IsEmpty());
  EXPECT_THAT(trees[0].links, ElementsAre(down, spine, up, nic));
}

TEST_F(PauseTreeTest, BeginAtTheSwitchThatIsFullWhereNothingItSendsByIsHeld) {
  const auto trees = pause_trees(graph_, {link("spine1", "leaf0"), link("spine2", "leaf0")});
  ASSERT_EQ(trees.size(), 1U);
  EXPECT_EQ(trees[0].root, node("leaf0"));
  EXPECT_EQ(trees[0].links.size(), 2U);
}

TEST_F(PauseTreeTest, AreSeveralWherePausesHaveSeveralCauses) {
  const auto trees =
      pause_trees(graph_, {link("leaf0", "s0"), link("spine1", "leaf0"), link("leaf3", "s12")});
  ASSERT_EQ(trees.size(), 2U);
  EXPECT_EQ(trees[0].root, node("s0"));
  EXPECT_EQ(trees[1].root, node("s12"));
}

TEST_F(PauseTreeTest, BeginAtACircleThatWaitsForItself) {
  const auto one = link("leaf0", "spine0");
  const auto two = link("spine0", "leaf1");
  const auto three = link("leaf1", "spine1");
  const auto four = link("spine1", "leaf0");
  const auto nic = link("s4", "leaf1");
  const auto trees = pause_trees(graph_, {one, two, three, four, nic});
  ASSERT_EQ(trees.size(), 1U);
  EXPECT_THAT(trees[0].cycle, UnorderedElementsAre(one, two, three, four));
  EXPECT_THAT(trees[0].links, UnorderedElementsAre(one, two, three, four, nic));
}

TEST_F(PauseTreeTest, AreNoneWhereNothingIsHeld) {
  EXPECT_THAT(pause_trees(graph_, {}), IsEmpty());
}

}  // namespace
}  // namespace regatta::fabric
