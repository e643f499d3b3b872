#include "regatta/network/link_rates/rate_verdict.h"

#include <random>
#include <set>

#include <gtest/gtest.h>

#include "regatta/network/link_rates/test_rates.h"

namespace regatta::link_rates {
namespace {

class DecideRates : public testing::Test {
 protected:
  RateVerdicts decide(const SlowRates& slow, double noise = 0.05) const {
    return decide_rates(fabric_.graph, measure(fabric_.graph, plan_.paths, slow, noise),
                        plan_.paths);
  }
  std::uint32_t link(const std::string& cable, const std::string& from) const {
    return link_called(fabric_.graph, cable, from);
  }
  static std::set<std::uint32_t> links_of(const RateVerdicts& verdicts) {
    std::set<std::uint32_t> links;
    for (const SlowLink& slow : verdicts.slow)
      links.insert(slow.link);
    return links;
  }

  const Fabric fabric_{{.servers = 8, .servers_per_leaf = 2, .spines = 2}};
  const RatePlan plan_ = plan_rates(fabric_.graph, fabric_.routes, fabric_.seeds);
};

TEST_F(DecideRates, BlamesNoLinkOfAHealthyFabric) {
  const RateVerdicts verdicts = decide({}, 0.15);
  EXPECT_TRUE(verdicts.slow.empty());
  EXPECT_EQ(verdicts.unexplained, 0U);
  for (const LinkRate& rate : verdicts.links)
    EXPECT_TRUE(rate.is_measured);
}

TEST_F(DecideRates, NamesEachLinkThatIsCutToAThirdAndItsDirection) {
  for (std::uint32_t link = 0; link < 2 * fabric_.graph.links.size(); ++link) {
    const RateVerdicts verdicts = decide({{link, {1e9 / 3}}});
    ASSERT_EQ(links_of(verdicts), std::set<std::uint32_t>{link});
    EXPECT_NEAR(verdicts.slow[0].measured.value, 1e9 / 3, 0.06e9);
    EXPECT_FALSE(verdicts.slow[0].slow_paths.empty());
    EXPECT_EQ(verdicts.unexplained, 0U);
    EXPECT_TRUE(verdicts.links[link].is_measured);
  }
}

TEST_F(DecideRates, ClaimsNothingAboutALinkBehindASlowOne) {
  const Fabric two_leaves({.servers = 4, .servers_per_leaf = 2, .spines = 2});
  const auto slow = link_called(two_leaves.graph, "leaf0-spine1", "leaf0");
  const RatePlan plan = plan_rates(two_leaves.graph, two_leaves.routes, two_leaves.seeds);
  const RateVerdicts verdicts =
      decide_rates(two_leaves.graph, measure(two_leaves.graph, plan.paths, {{slow, {3e8}}}), {});
  for (const LinkRate& rate : verdicts.links)
    EXPECT_EQ(rate.is_measured,
              rate.link != link_called(two_leaves.graph, "leaf1-spine1", "spine1"));
}

TEST_F(DecideRates, ShowsThatTheLinksBeforeTheSlowOneAreFast) {
  const auto slow = link("leaf0-spine1", "spine1");
  const RateVerdicts verdicts = decide({{slow, {2e8}}});
  ASSERT_EQ(verdicts.slow.size(), 1U);
  EXPECT_FALSE(verdicts.slow[0].fast_before.empty());
  EXPECT_TRUE(verdicts.slow[0].alternatives.empty());
}

TEST_F(DecideRates, TellsPairsOfSlowLinksApart) {
  std::mt19937 random(7);
  int right = 0;
  for (int trial = 0; trial < 100; ++trial) {
    SlowRates slow;
    while (slow.size() < 2)
      slow[static_cast<std::uint32_t>(random() % (2 * fabric_.graph.links.size()))] = {
          1e9 * (0.1 + 0.05 * static_cast<double>(random() % 10))};
    std::set<std::uint32_t> expected;
    for (const auto& [one, rate] : slow)
      expected.insert(one);
    right += links_of(decide(slow)) == expected ? 1 : 0;
  }
  EXPECT_GE(right, 97);
}

TEST_F(DecideRates, GivesAlternativesAndAPathThatSeparatesThem) {
  // Only whole paths are measured: those over one uplink cross the one behind it, too.
  const auto slow = link("leaf0-spine1", "leaf0");
  std::vector<TrainPath> whole;
  for (TrainPath path : plan_.paths)
    if (path.loaded == 2 && path.links[1] == slow && path.links.size() == 4) {
      path.loaded = 4;
      whole.push_back(path);
    }
  ASSERT_FALSE(whole.empty());
  whole.resize(1);
  const RateVerdicts verdicts =
      decide_rates(fabric_.graph, measure(fabric_.graph, whole, {{slow, {2e8}}}), whole);
  ASSERT_EQ(verdicts.slow.size(), 1U);
  EXPECT_EQ(verdicts.slow[0].alternatives.size(), 3U);
  for (const SlowLinkAlternative& other : verdicts.slow[0].alternatives)
    EXPECT_TRUE(other.separator.has_value());
}

TEST_F(DecideRates, BlamesNoLinkForASenderThatIsSlowItself) {
  auto measurements = measure(fabric_.graph, plan_.paths, {});
  for (PathMeasurement& one : measurements) {
    one.offered = {3e8};
    one.rate = {2.9e8};
  }
  const RateVerdicts verdicts = decide_rates(fabric_.graph, measurements, {});
  EXPECT_TRUE(verdicts.slow.empty());
  for (const LinkRate& rate : verdicts.links) {
    EXPECT_FALSE(rate.is_measured);
    EXPECT_NEAR(rate.at_least.value, 2.9e8, 1);
  }
}

TEST_F(DecideRates, SaysOfAHiddenLinkOnlyWhatItCarriesAtLeast) {
  topo::Cluster cluster = probe::cluster_of({.servers = 4, .servers_per_leaf = 1, .spines = 2});
  cluster.fabric.uplink = {5e8};
  const topo::Graph graph = build_graph(cluster);
  const fabric::Routes routes(graph);
  const RatePlan plan = plan_rates(graph, routes, topo::hash_seeds(cluster, graph));
  const RateVerdicts verdicts = decide_rates(graph, measure(graph, plan.paths, {}, 0), {});
  const LinkRate& down = verdicts.links[link_called(graph, "s0.nic0-leaf0", "leaf0")];
  EXPECT_FALSE(down.is_measured);
  EXPECT_EQ(down.at_least.value, 5e8);
}

TEST_F(DecideRates, LeavesOutPathsOnWhichNothingArrived) {
  auto measurements = measure(fabric_.graph, plan_.paths, {});
  for (PathMeasurement& one : measurements) {
    one.rate = {};
    one.trains = 0;
  }
  EXPECT_TRUE(decide_rates(fabric_.graph, measurements, {}).slow.empty());
}

}  // namespace
}  // namespace regatta::link_rates
