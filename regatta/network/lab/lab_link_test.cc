#include <filesystem>
#include <map>

#include <fmt/core.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "regatta/model/topo/cluster_yaml.h"
#include "regatta/model/topo/graph_names.h"
#include "regatta/network/lab/internal/lab_fixture_test.h"
#include "regatta/network/lab/internal/lab_probe_test.h"

namespace regatta::lab {
namespace {

TEST_F(Lab, ShapesALinkToItsRate) {
  bring_up(test_cluster("rate", 2, 2, 0));
  if (IsSkipped()) return;
  serve("s1");
  ASSERT_TRUE(can_reach("s0", address(1)));
  constexpr int kBytes = 4 << 20;
  double best = 1e9;  // a busy machine can only make it slower
  for (int i = 0; i < 3; ++i)
    best = std::min(best, seconds_to_send("s0", 1, kBytes));
  EXPECT_NEAR(kBytes * 8 / best / 1e6, 100, 15);
}

TEST_F(Lab, SpreadsConnectionsOverBothUplinks) {
  bring_up(test_cluster("ecmp", 2, 1, 2));
  if (IsSkipped()) return;
  serve("s1");
  ASSERT_TRUE(can_reach("s0", address(1)));
  ASSERT_GT(seconds_to_send("s0", 1, 64 * 16384, 64), 0);
  auto state = links();
  const auto first = static_cast<double>(state["leaf0-spine0"].sent_by_a.value);
  const auto second = static_cast<double>(state["leaf0-spine1"].sent_by_a.value);
  EXPECT_GT(first / (first + second), 0.2);
  EXPECT_LT(first / (first + second), 0.8);
}

TEST_F(Lab, HearsWhichPortIsAtTheOtherEndOfACable) {
  bring_up(test_cluster("swap", 2, 1, 2));
  if (IsSkipped()) return;
  const auto graph = graph_of(lab_);
  ASSERT_TRUE(graph);
  const auto end_a = [&](const std::string& name) {
    return 2 * topo::find_link(*graph, name).value().index();
  };
  const auto expect_as_planned = [&] {
    const auto heard = heard_ports(lab_);
    ASSERT_TRUE(heard) << heard.error().message;
    ASSERT_EQ(heard->size(), 2 * graph->links.size());
    for (std::size_t port = 0; port < heard->size(); ++port)
      EXPECT_EQ((*heard)[port], static_cast<int>(port ^ 1U));
  };
  expect_as_planned();
  const Fault swap{.kind = FaultKind::kLinkSwap,
                   .target = "leaf0-spine0",
                   .rate = {},
                   .drop_share = 0,
                   .other = "leaf1-spine1"};
  ASSERT_TRUE(inject(lab_, swap));
  const auto heard = heard_ports(lab_);
  ASSERT_TRUE(heard);
  const auto one = end_a("leaf0-spine0");
  const auto other = end_a("leaf1-spine1");
  EXPECT_EQ((*heard)[one], static_cast<int>(other + 1));
  EXPECT_EQ((*heard)[other + 1], static_cast<int>(one));
  EXPECT_EQ((*heard)[other], static_cast<int>(one + 1));
  EXPECT_EQ((*heard)[end_a("leaf0-spine1")], static_cast<int>(end_a("leaf0-spine1") + 1));
  EXPECT_TRUE(links()["leaf1-spine1"].has_fault);
  EXPECT_EQ(inject(lab_, swap).error().code, Code::kConflict);
  ASSERT_TRUE(clear(lab_, "leaf1-spine1"));
  expect_as_planned();
  EXPECT_FALSE(links()["leaf0-spine0"].has_fault);
  serve("s1");
  EXPECT_TRUE(can_reach("s0", address(1))) << "routes are back";
}

class ThreeTiers : public Lab {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists("/proc/sys/net/ipv4/fib_multipath_hash_seed"))
      GTEST_SKIP() << "this kernel has no hash seed per namespace";
    std::string text = test_cluster_text(fmt::format("test-{}-tiers", ::getpid()), 2, 1, 2);
    const std::string two = "leaf, spine]\n";
    text.replace(text.find(two), two.size(),
                 "leaf, spine, super-spine]\n  leaves_per_group: 1\n  super_spines: 4\n");
    const auto cluster = topo::parse_cluster(text, "test.yaml");
    ASSERT_TRUE(cluster) << cluster.error().message;
    bring_up(*cluster);
    if (IsSkipped()) return;
    serve("s1");
    ASSERT_TRUE(can_reach("s0", address(1)));
  }

  // That each spine used both of its super-spines.
  void expect_spread() const {
    auto state = links();
    for (const auto& [spine, supers] : std::map<std::string, std::vector<std::string>>{
             {"spine0", {"super0", "super1"}}, {"spine1", {"super2", "super3"}}}) {
      const auto a = static_cast<double>(state[spine + "-" + supers[0]].sent_by_a.value);
      const auto b = static_cast<double>(state[spine + "-" + supers[1]].sent_by_a.value);
      EXPECT_GT(a / (a + b), 0.3) << spine;
      EXPECT_LT(a / (a + b), 0.7) << spine;
    }
  }
};

// With one hash key in all switches a spine sees only flows that the leaf's hash sent there, and
// its own hash then sends them all to one super-spine.
TEST_F(ThreeTiers, AreNotPolarisedForDatagrams) {
  EXPECT_GT(echoes("s0", 1, 400), 380);
  expect_spread();
}

// The sender's kernel marks the packets of a connection with a hash of its own, which switches must
// not use.
TEST_F(ThreeTiers, AreNotPolarisedForConnections) {
  constexpr int kConnections = 200;
  EXPECT_GT(seconds_to_send("s0", 1, kConnections * 4096, kConnections), 0);
  expect_spread();
}

TEST_F(Lab, LosesALinkAndGetsItBack) {
  bring_up(test_cluster("down", 4, 2, 2));
  if (IsSkipped()) return;
  serve("s1");
  ASSERT_TRUE(can_reach("s0", address(1)));
  for (const std::string link : {"s0.nic0-leaf0", "leaf0-spine0"}) {
    ASSERT_TRUE(inject(lab_, {FaultKind::kLinkDown, link, {}, 0}));
    EXPECT_FALSE(links()[link].up);
    EXPECT_TRUE(links()[link].has_fault);
  }
  EXPECT_FALSE(can_reach("s0", address(1)));
  ASSERT_TRUE(clear(lab_, "s0.nic0-leaf0"));
  EXPECT_TRUE(can_reach("s0", address(1)));
  EXPECT_FALSE(links()["leaf0-spine0"].up);
  ASSERT_TRUE(clear(lab_, ""));
  EXPECT_TRUE(links()["leaf0-spine0"].up);
  serve("s3");
  for (int i = 0; i < 8; ++i)
    EXPECT_TRUE(can_reach("s0", address(3)));  // also over spine0
}

// A cable between switches is seen by its two ends only; the leaf at the far end has to learn of
// it, or what it hashes to that spine is lost.
TEST_F(Lab, GoesRoundALostUplinkFromBothSides) {
  bring_up(test_cluster("around", 4, 2, 2));
  if (IsSkipped()) return;
  serve("s1");
  serve("s3");
  ASSERT_TRUE(can_reach("s0", address(3)));
  ASSERT_TRUE(inject(lab_, {FaultKind::kLinkDown, "leaf1-spine0", {}, 0}));
  // A path that leads nowhere would lose half of them; on a busy machine one may be late.
  constexpr int kMost = 61;
  EXPECT_GE(echoes("s0", 3, 64), kMost);
  EXPECT_GE(echoes("s3", 1, 64), kMost);
  ASSERT_TRUE(inject(lab_, {FaultKind::kLinkDown, "leaf1-spine1", {}, 0}));
  EXPECT_EQ(echoes("s0", 3, 8), 0);
  ASSERT_TRUE(clear(lab_, ""));
  EXPECT_GE(echoes("s0", 3, 64), kMost);
}

// For a program that is the routing protocol itself.
TEST_F(Lab, LeavesRoutesToOthersWhenTold) {
  bring_up(test_cluster("others", 4, 2, 2));
  if (IsSkipped()) return;
  serve("s3");
  ASSERT_TRUE(can_reach("s0", address(3)));
  ASSERT_TRUE(set_converging(lab_, false));
  ASSERT_TRUE(inject(lab_, {FaultKind::kLinkDown, "leaf1-spine0", {}, 0}));
  const int lost_directions = echoes("s0", 3, 64);
  EXPECT_GT(lost_directions, 8);
  EXPECT_LT(lost_directions, 56);  // those over spine0 never come
  ASSERT_TRUE(set_converging(lab_, true));
  ASSERT_TRUE(clear(lab_, ""));
  EXPECT_GE(echoes("s0", 3, 64), 61);
}

TEST_F(Lab, TellsItsGraph) {
  bring_up(test_cluster("graph", 4, 2, 2));
  if (IsSkipped()) return;
  // A fault is none of the graph's rates.
  ASSERT_TRUE(inject(lab_, {FaultKind::kLinkSlow, "s1.nic0-leaf0", BytesPerSecond{1.25e6}, 0}));
  const auto told = graph_of(lab_);
  ASSERT_TRUE(told) << told.error().message;
  const topo::Graph built = build_graph(cluster_);
  ASSERT_EQ(told->nodes.size(), built.nodes.size());
  for (std::size_t i = 0; i < built.nodes.size(); ++i) {
    EXPECT_EQ(told->nodes[i].name, built.nodes[i].name);
    EXPECT_EQ(told->nodes[i].kind, built.nodes[i].kind);
    EXPECT_EQ(told->links_of[i], built.links_of[i]);
  }
  ASSERT_EQ(told->links.size(), built.links.size());
  for (std::size_t i = 0; i < built.links.size(); ++i) {
    EXPECT_EQ(told->links[i].name, built.links[i].name);
    EXPECT_EQ(told->links[i].a, built.links[i].a);
    EXPECT_EQ(told->links[i].b, built.links[i].b);
    EXPECT_EQ(told->links[i].a_nic, built.links[i].a_nic);
    EXPECT_NEAR(told->links[i].rate.value, built.links[i].rate.value, 1);
  }
}

TEST_F(Lab, SlowsALinkAndRestoresIt) {
  bring_up(test_cluster("slow", 2, 2, 0));
  if (IsSkipped()) return;
  serve("s1");
  ASSERT_TRUE(can_reach("s0", address(1)));
  ASSERT_TRUE(inject(lab_, {FaultKind::kLinkSlow, "s1.nic0-leaf0", BytesPerSecond{1.25e6}, 0}));
  EXPECT_DOUBLE_EQ(links()["s1.nic0-leaf0"].rate.value, 1.25e6);
  constexpr int kBytes = 1 << 20;
  EXPECT_GT(seconds_to_send("s0", 1, kBytes), 0.75);  // 0.84 s at 10 Mbit/s
  ASSERT_TRUE(clear(lab_, "s1.nic0-leaf0"));
  EXPECT_LT(seconds_to_send("s0", 1, kBytes), 0.4);  // 0.084 s at 100 Mbit/s
}

TEST_F(Lab, DropsAShareOfThePackets) {
  bring_up(test_cluster("drop", 2, 2, 0));
  if (IsSkipped()) return;
  serve("s1");
  ASSERT_TRUE(can_reach("s0", address(1)));
  EXPECT_GT(echoes("s0", 1, 400), 395);
  ASSERT_TRUE(inject(lab_, {FaultKind::kLinkDrop, "s0.nic0-leaf0", {}, 0.3}));
  EXPECT_NEAR(echoes("s0", 1, 400), 400 * 0.7 * 0.7, 50);  // there and back; 50 is five deviations
  ASSERT_TRUE(inject(lab_, {FaultKind::kLinkDrop, "s0.nic0-leaf0", {}, 1.0}));
  EXPECT_EQ(echoes("s0", 1, 400), 0);
  EXPECT_DOUBLE_EQ(links()["s0.nic0-leaf0"].drop_share, 1.0);
  EXPECT_TRUE(links()["s0.nic0-leaf0"].up);
  ASSERT_TRUE(clear(lab_, "s0.nic0-leaf0"));
  EXPECT_GT(echoes("s0", 1, 400), 395);
}

}  // namespace
}  // namespace regatta::lab
