#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "regatta/app/report/network_report.h"
#include "regatta/network/link_rates/test_rates.h"

namespace regatta::report {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

class RateReport : public testing::Test {
 protected:
  void SetUp() override {
    link_rates::SlowRates slow;
    for (const char* const from : {"leaf0", "spine1"})
      slow[link_rates::link_called(fabric_.graph, "leaf0-spine1", from)] = {2.5e8};
    measurements_ = link_rates::measure(fabric_.graph, plan_.paths, slow, 0);
    verdicts_ = decide_rates(fabric_.graph, measurements_, plan_.paths);
    ASSERT_EQ(verdicts_.slow.size(), 2U);
  }
  RateEventFormat format(bool is_json = false) const { return {fabric_.graph, is_json}; }

  const probe::Fabric fabric_{{.servers = 4, .servers_per_leaf = 2, .spines = 2}};
  const link_rates::RatePlan plan_ =
      link_rates::plan_rates(fabric_.graph, fabric_.routes, fabric_.seeds);
  std::vector<link_rates::PathMeasurement> measurements_;
  link_rates::RateVerdicts verdicts_;
};

TEST_F(RateReport, SaysHowMuchOfItsRateASlowLinkCarriesAndShowsThePaths) {
  const std::string text = format().slow(verdicts_.slow[0], measurements_, nullptr, Seconds{2.5});
  EXPECT_THAT(text, StartsWith("   2.50 s  slow: leaf0-spine1 from "));
  EXPECT_THAT(text, HasSubstr("carries 2 Gbps of 8 Gbps, 25 %\n"));
  EXPECT_THAT(text, HasSubstr("\n           with it: 2 Gbps (s"));
  EXPECT_THAT(text, HasSubstr("\n           without it, up to it: 8 Gbps (s"));
  const auto event =
      nlohmann::json::parse(format(true).slow(verdicts_.slow[0], measurements_, nullptr, {2.5}));
  EXPECT_EQ(event["cable"], "leaf0-spine1");
  EXPECT_EQ(event["measured_bps"], 2e9);
  EXPECT_EQ(event["counters"], "none");
  EXPECT_FALSE(event["slow_paths"].empty());
}

TEST_F(RateReport, SetsCountersBesideTheVerdict) {
  const link_rates::LinkCounterTotals totals{.time = {10}, .peak = {2.5e8}, .drops = 17};
  EXPECT_THAT(format().slow(verdicts_.slow[0], measurements_, &totals, {1}),
              HasSubstr("counters strengthens this: at most 2 Gbps in a reading, 17 drops\n"));
}

TEST_F(RateReport, SummaryBeginsWithTheVerdictAndJoinsBothDirections) {
  const RateEventFormat::Totals totals{
      .trains = 144, .busy_links = 0, .largest_share = 0.04, .time = {3}};
  EXPECT_EQ(format().summary(verdicts_, totals),
            "slow: 16 directed links, 2 slow (leaf0-spine1 both ways), 1 not measured; 144 trains "
            "in 3 s, at most 4.0 % of a link\n");
  auto healthy = verdicts_;
  healthy.slow.clear();
  EXPECT_THAT(format().summary(healthy, totals), StartsWith("healthy: 16 directed links, 0 slow"));
  healthy.links[0] = {.link = 0, .described = {1e9}};
  EXPECT_THAT(format().summary(healthy, totals),
              StartsWith("incomplete: 16 directed links, 0 slow"));
  EXPECT_EQ(format().summary(healthy, {}), "no train arrived\n");
  EXPECT_EQ(nlohmann::json::parse(format(true).summary(verdicts_, totals))["slow"], 2);
}

TEST_F(RateReport, SaysWhichLinksHaveTooFewKnownPaths) {
  const link_rates::PortDiscovery discovery(fabric_.graph, fabric_.routes);
  EXPECT_THAT(format().learned(discovery, Seconds{2}),
              StartsWith("0 paths are known from 0 traces in 2 s, too few over s0.nic0-leaf0"));
  EXPECT_EQ(nlohmann::json::parse(format(true).learned(discovery, {2}))["thin"].size(), 16U);
}

TEST_F(RateReport, ListsTheRatesOfAllLinks) {
  EXPECT_THAT(format().rates(verdicts_.links), HasSubstr("s0.nic0-leaf0 from s0 to leaf0"));
  EXPECT_EQ(nlohmann::json::parse(format(true).rates(verdicts_.links))["links"].size(), 16U);
}

TEST_F(RateReport, TellsOfAFaultInCountersWhatElseItMayBe) {
  const link_rates::CounterFault fault{.link = 0,
                                       .kind = link_rates::CounterFaultKind::kErrors,
                                       .described = {1e9},
                                       .share = 0.001,
                                       .totals = {.errors = 5}};
  const std::string text = format().counter_fault(fault);
  EXPECT_THAT(text, StartsWith("errors: s0.nic0-leaf0 from s0 to leaf0, 0.001 of its packets\n"));
  EXPECT_THAT(text, HasSubstr("to tell: swap the cable"));
  EXPECT_EQ(nlohmann::json::parse(format(true).counter_fault(fault))["kind"], "errors");
  const link_rates::SwitchCounterTotals totals(fabric_.graph);
  EXPECT_THAT(format().counter_summary({fault}, totals),
              StartsWith("faulty: 0 ports read, 1 directed link faulty (s0.nic0-leaf0"));
}

}  // namespace
}  // namespace regatta::report
