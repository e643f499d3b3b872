#include <gmock/gmock.h>

#include "regatta/app/report/internal/page_fault.h"
#include "regatta/app/report/pages.h"
#include "regatta/network/simulate/scenario_yaml.h"
#include "regatta/network/simulate/test_cluster.h"

namespace regatta::report {
namespace {

using testing::HasSubstr;
using testing::Not;

std::string page_of(const std::string& text) {
  const simulate::SimulatedNetwork network(simulate::test_cluster(4, 2));
  const auto scenario = simulate::parse_scenario(text, "scenario.yaml");
  EXPECT_TRUE(scenario) << scenario.error().message;
  const auto outcome = simulate::run_scenario(*scenario, network);
  EXPECT_TRUE(outcome) << outcome.error().message;
  return simulation_html(*scenario, network, *outcome);
}

TEST(SimulationHtml, ShowsItemsLinksAndSlowMessages) {
  const std::string page = page_of(
      "name: <rings>\n"
      "traffic: [{pattern: ring_all_reduce, name: a & b, bytes: 64MiB, ranks: rails}]\n");
  EXPECT_THAT(page, HasSubstr("&lt;rings&gt;"));
  EXPECT_THAT(page, Not(HasSubstr("<rings>")));
  EXPECT_THAT(page, HasSubstr("a &amp; b"));
  EXPECT_THAT(page, HasSubstr("s0.nic0-leaf0 up"));
  EXPECT_THAT(page, HasSubstr("NICs to leaves"));
  EXPECT_EQ(page_fault(page), "");
  EXPECT_THAT(page, HasSubstr("The slowest messages"));
}

TEST(SimulationHtml, ShowsLinksAndQueuesOverTimeOfPackets) {
  const std::string incast =
      "traffic: [{pattern: incast, to: s0/0, bytes: 4MiB, ranks: servers}]\n";
  const std::string page = page_of("level: packet\n" + incast);
  EXPECT_THAT(page, HasSubstr("Load over time"));
  EXPECT_THAT(page, HasSubstr("Queues over time"));
  EXPECT_THAT(page, HasSubstr("Longest queue before the links of each kind"));
  EXPECT_THAT(page, HasSubstr("s0.nic0-leaf0 down"));
  EXPECT_THAT(page_of("level: mixed\n" + incast), HasSubstr("Queues over time"));
  EXPECT_THAT(page_of(incast), Not(HasSubstr("Queues over time")));
}

TEST(SimulationHtml, NamesLinksThatTiersHashingAlikeLeaveEmpty) {
  const simulate::SimulatedNetwork network(simulate::test_cluster(4, 1));
  simulate::SimulationResult outcome;
  outcome.polarisation.push_back({.empty = {0}, .by_chance = 1e-9});
  const std::string page = simulation_html({}, network, outcome);
  EXPECT_THAT(page, testing::HasSubstr("spines hash as leaves do"));
  EXPECT_THAT(page, testing::HasSubstr(network.link_name(0)));
  outcome.polarisation.clear();
  EXPECT_THAT(simulation_html({}, network, outcome),
              testing::Not(testing::HasSubstr("hash as leaves do")));
}

TEST(SimulationHtml, ShowsPauseStormsAndWhereTheyBegan) {
  const std::string page = page_of(
      "level: packet\n"
      "traffic: [{pattern: incast, to: s0/0, bytes: 4MiB, ranks: servers}]\n"
      "failures: [{at: 10us, pausing_nic: s0.nic0-leaf0}]\n");
  EXPECT_THAT(page, HasSubstr("Pause storms"));
  EXPECT_THAT(page, HasSubstr("a NIC of s0 lets nothing in (s0.nic0-leaf0 down)"));
}

TEST(SimulationHtml, MarksFailuresOnEveryChart) {
  const std::string page = page_of(
      "traffic: [{pattern: ring_all_reduce, bytes: 64MiB, ranks: rails}]\n"
      "failures: [{at: 1us, link: leaf0-spine0, back: 3us}, {at: 1h, switch: spine1}]\n");
  EXPECT_THAT(page, HasSubstr("link leaf0-spine0 fails"));
  EXPECT_THAT(page, HasSubstr("after the end"));
  EXPECT_EQ(count(page, "<i class=\"mark\""), 2U);  // the first one, on the curves and the strips
}

TEST(SimulationHtml, NamesKindsOfLinksThatStayIdle) {
  const std::string page =
      page_of("traffic: [{pattern: message, from: s0/0, to: s1/0, bytes: 50MB}]\n");
  EXPECT_THAT(page, HasSubstr("Always at zero: leaves to spines, spines to leaves."));
}

TEST(SimulationHtml, SaysWhatNeverEnds) {
  const std::string page = page_of(
      "traffic: [{pattern: message, from: s0/0, to: s2/0, bytes: 50MB}]\n"
      "failures: [{at: 1us, link: s0.nic0-leaf0}]\n");
  EXPECT_THAT(page, HasSubstr("never ends"));
  EXPECT_THAT(page, HasSubstr("1 flow never ends"));
}

}  // namespace
}  // namespace regatta::report
