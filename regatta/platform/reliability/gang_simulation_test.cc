#include "regatta/platform/reliability/gang_simulation.h"

#include <algorithm>
#include <vector>

#include <gtest/gtest.h>

#include "regatta/base/core/stats.h"
#include "regatta/base/core/test_files.h"
#include "regatta/platform/reliability/checkpointing.h"
#include "regatta/platform/reliability/spares.h"

namespace regatta::reliability {
namespace {

FailureMix one_cause(FailureClass failure_class, FailureRate per_device) {
  FailureCause cause{"cause", failure_class, usual_effect(failure_class), 1, 1, per_device};
  return {"test", "", {cause}};
}

// A gang of 16 nodes without lemons and with spares that never run out, of the costs given.
GangOptions simple_gang(const RestartCosts& costs, Seconds interval, FailureClass failure_class) {
  GangOptions options;
  options.nodes = 16;
  options.spares = 200;
  options.mix = one_cause(failure_class, rate_of(1.0 / 128, costs.between_failures));
  options.horizon = 20000 * costs.between_failures;
  options.checkpoint = {interval, costs.save, costs.load};
  options.detect = costs.detect;
  options.replace = costs.replace;
  options.repair = {.median = costs.between_failures, .mean = costs.between_failures};
  return options;
}

void expect_closed_form(const RestartCosts& costs, Seconds interval, FailureClass failure_class) {
  GangOptions options = simple_gang(costs, interval, failure_class);
  // At least 40,000 intervals that count, also where most are undone.
  options.horizon = std::max(options.horizon, 40000 * (interval / expected_ettr(costs, interval)));
  const auto outcome = simulate_gang(options, 11);
  ASSERT_TRUE(outcome) << outcome.error().message;
  EXPECT_NEAR(outcome->ettr() / expected_ettr(costs, interval), 1, 0.01);
  const LostTime lost = lost_per_day(costs, interval);
  const double days = options.horizon / kDay;
  EXPECT_NEAR(outcome->recomputed / (lost.recompute * days), 1, 0.05);
  EXPECT_NEAR(outcome->restarting / (lost.restart * days), 1, 0.05);
}

// Daly's assumptions hold: exponential failures, spares always, no lemons.
TEST(GangSimulation, EqualsDalysClosedFormWithinAPercent) {
  for (const double save : {0.5, 20.0, 300.0})
    for (const double restart : {10.0, 200.0, 1500.0})
      for (const double hours : {0.5, 3.1, 24.0}) {
        const RestartCosts costs{.save = {save},
                                 .detect = {restart / 4},
                                 .replace = {restart / 4},
                                 .load = {restart / 2},
                                 .between_failures = hours * kHour};
        for (const double factor : {0.3, 1.0, 3.0}) {
          SCOPED_TRACE(testing::Message()
                       << save << " " << restart << " " << hours << " " << factor);
          expect_closed_form(costs, daly_interval(costs) * factor, FailureClass::kNetwork);
        }
      }
}

TEST(GangSimulation, EqualsTheClosedFormWhereFailuresOnlyRestart) {
  RestartCosts costs{
      .save = {10}, .detect = {30}, .replace = {}, .load = {120}, .between_failures = 2 * kHour};
  expect_closed_form(costs, daly_interval(costs), FailureClass::kSoftware);
}

// Erlang's B formula: any number of spares, and a repair time of another shape than exponential.
TEST(GangSimulation, WaitsForNodesTheShareOfTimeOfTheClosedForm) {
  RestartCosts costs{
      .save = {1}, .detect = {1}, .replace = {1}, .load = {1}, .between_failures = 4 * kHour};
  for (const int spares : {0, 4, 10, 14}) {
    GangOptions options = simple_gang(costs, {600}, FailureClass::kHost);
    options.spares = spares;
    options.repair = {.median = 25 * kHour, .mean = 40 * kHour};
    options.horizon = 200000 * costs.between_failures;
    const auto outcome = simulate_gang(options, 5);
    ASSERT_TRUE(outcome);
    const SparePool pool{.nodes = 16, .node_loss = rate_of(1, 4 * kHour), .repair = 40 * kHour};
    const double share = outcome->waiting / options.horizon;
    EXPECT_NEAR(share, wait_share(pool, spares), 0.02 * wait_share(pool, spares) + 0.002) << spares;
    const double ettr = ettr_with_waiting(costs, {600}, wait_share(pool, spares));
    EXPECT_NEAR(outcome->ettr() / ettr, 1, 0.02) << spares;
  }
}

GangOptions llama3_gang() {
  const auto mixes =
      read_failure_mixes(read_test_file(REGATTA_TESTDATA "/llama3_mix.csv"), "llama3_mix.csv");
  GangOptions options;
  options.nodes = 2048;
  options.spares = 60;
  options.horizon = 54 * kDay;
  options.mix = *with_rates(mixes->front(), 16384, 54 * kDay);
  options.lemons = {0.013, 10};
  options.checkpoint = {{150}, {1}, {90}};
  options.durable = {{1800}, {2}, {180}};
  options.checkpoint_loss = 0.02;
  options.detect = {20};
  options.replace = {60};
  options.repair = {30 * kHour, 146 * kHour, 0.3, kDay};
  options.planned = {47, {300}};
  options.weigh_risk = true;
  options.prior = {0.5, {0.5 / (6.5 / 2048 / kDay.value)}};
  return options;
}

TEST(GangSimulation, AccountsForAllTimeAndRepeatsWithItsSeed) {
  const GangOptions options = llama3_gang();
  const auto first = simulate_gang(options, 3);
  const auto second = simulate_gang(options, 3);
  ASSERT_TRUE(first) << first.error().message;
  const Seconds sum = first->trained + first->recomputed + first->saving + first->restarting +
                      first->waiting + first->planned;
  EXPECT_NEAR(sum / options.horizon, 1, 1e-9);
  EXPECT_EQ(first->trained, second->trained);
  EXPECT_EQ(first->failures, second->failures);
  EXPECT_NE(first->trained, simulate_gang(options, 4)->trained);
}

// Long repairs fill up in months, so a gang that starts with all nodes waits less than Erlang's B
// says.
TEST(GangSimulation, WaitsAsInTheLongRunAfterAWarmUp) {
  GangOptions options = llama3_gang();
  options.weigh_risk = false;
  options.lemons = {};
  options.repair = {100 * kHour, 146 * kHour, 0, kDay};
  options.spares = 35;
  options.planned = {};
  double started = 0;
  double warmed = 0;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    options.warm_up = {};
    started += simulate_gang(options, seed)->waiting / options.horizon / 20;
    options.warm_up = 200 * kDay;
    const auto outcome = simulate_gang(options, seed);
    warmed += outcome->waiting / options.horizon / 20;
    const Seconds sum = outcome->trained + outcome->recomputed + outcome->saving +
                        outcome->restarting + outcome->waiting + outcome->planned;
    EXPECT_NEAR(sum / options.horizon, 1, 1e-9);
  }
  const SparePool pool{
      .nodes = 2048, .node_loss = rate_of(356, 54 * kDay), .repair = options.repair.mean};
  EXPECT_NEAR(warmed, wait_share(pool, 35), 0.02);
  EXPECT_LT(started, warmed - 0.02);
}

TEST(GangSimulation, HasAsManyFailuresAsTheMixWithLemonsBesideRelapses) {
  std::vector<double> failures;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    GangOptions options = llama3_gang();
    options.weigh_risk = false;
    const auto outcome = simulate_gang(options, seed);
    failures.push_back(outcome->failures - outcome->relapses);
  }
  // Lemons are away for repair more than others, so a few less.
  EXPECT_NEAR(median(failures), 410, 20);
}

TEST(GangSimulation, LosesFewerNodesWhenItWeighsTheirRisk) {
  double weighed = 0;
  double unweighed = 0;
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    GangOptions options = llama3_gang();
    options.lemons.factor = 180;
    options.repair.median = 3 * kHour;
    options.repair.mean = 6 * kHour;
    options.prior = {0.01, {0.01 / (6.5 / 2048 / kDay.value)}};
    weighed += simulate_gang(options, seed)->node_losses;
    options.weigh_risk = false;
    unweighed += simulate_gang(options, seed)->node_losses;
  }
  EXPECT_LT(weighed, 0.8 * unweighed);
}

TEST(GangSimulation, WaitsWithoutSparesAndNotWithEnough) {
  GangOptions options = llama3_gang();
  options.spares = 0;
  EXPECT_GT(simulate_gang(options, 1)->waiting, 20 * kDay);
  options.spares = 200;
  EXPECT_EQ(simulate_gang(options, 1)->waiting, Seconds{});
}

TEST(GangSimulation, NamesTheOptionThatIsOutOfRange) {
  const auto message = [](auto change) {
    GangOptions options = llama3_gang();
    change(options);
    const auto outcome = simulate_gang(options, 1);
    return outcome ? "" : outcome.error().message;
  };
  EXPECT_EQ(message([](GangOptions& o) { o.nodes = 0; }), "gang: nodes: give at least 1");
  EXPECT_EQ(message([](GangOptions& o) { o.mix = {}; }), "gang: mix: give causes with rates");
  EXPECT_EQ(message([](GangOptions& o) { o.checkpoint.interval = {}; }),
            "gang: checkpoint.interval: give a positive time");
  EXPECT_EQ(message([](GangOptions& o) { o.repair.relapse_share = 1; }),
            "gang: repair: give a relapse share from 0 to below 1 and a positive relapse time");
  EXPECT_EQ(message([](GangOptions& o) { o.durable.interval = {}; }),
            "gang: durable.interval: give a positive time where checkpoints can be lost");
}

}  // namespace
}  // namespace regatta::reliability
