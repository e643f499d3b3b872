#include "regatta/platform/reliability/node_risk.h"

#include <cmath>

#include <gtest/gtest.h>

#include "regatta/platform/packing/random_sequence.h"
#include "regatta/platform/reliability/internal/random_times.h"

namespace regatta::reliability {
namespace {

using packing::RandomSequence;

// Nodes with rates from a Gamma distribution of that whole shape and mean, seen for a year.
std::vector<NodeHistory> drawn_nodes(int shape, FailureRate mean, int count, std::uint64_t seed) {
  RandomSequence random(seed);
  std::vector<NodeHistory> nodes;
  for (int i = 0; i < count; ++i) {
    double rate = 0;
    for (int k = 0; k < shape; ++k)
      rate += exponential_time(random, {1}).value * mean.value / shape;
    NodeHistory node{0, 365 * kDay};
    for (Seconds at{}; (at += exponential_time(random, {rate})) < node.exposure;)
      ++node.failures;
    nodes.push_back(node);
  }
  return nodes;
}

TEST(FitRatePrior, FindsTheDistributionThatTheNodesWereDrawnFrom) {
  const FailureRate mean = rate_of(4, 365 * kDay);
  for (const int shape : {1, 2, 5}) {
    const auto prior = fit_rate_prior(drawn_nodes(shape, mean, 20000, 7));
    ASSERT_TRUE(prior);
    EXPECT_NEAR(prior->shape / shape, 1, 0.06) << shape;
    EXPECT_NEAR(prior->mean() / mean, 1, 0.03) << shape;
  }
}

TEST(FitRatePrior, GivesANearlyEqualRateToNodesThatDifferByChanceAlone) {
  std::vector<NodeHistory> nodes(100, {1, kDay});
  const auto prior = fit_rate_prior(nodes);
  ASSERT_TRUE(prior);
  EXPECT_GT(prior->shape, 0.9 * kShapeMax);
  EXPECT_NEAR(prior->mean() * kDay, 1, 1e-3);
}

TEST(FitRatePrior, RefusesAHistoryWithoutFailures) {
  const std::vector<NodeHistory> nodes = {{0, kDay}, {0, kDay}};
  EXPECT_EQ(fit_rate_prior(nodes).error().message,
            "history of nodes: no failure in at least two nodes; give a longer history");
}

TEST(MomentRatePrior, IsNearTheDistributionThatTheNodesWereDrawnFrom) {
  const FailureRate mean = rate_of(4, 365 * kDay);
  for (const int shape : {1, 2, 5}) {
    const auto prior = moment_rate_prior(drawn_nodes(shape, mean, 20000, 7));
    ASSERT_TRUE(prior);
    EXPECT_NEAR(prior->shape / shape, 1, 0.1) << shape;
    EXPECT_NEAR(prior->mean() / mean, 1, 0.03) << shape;
  }
}

TEST(MomentRatePrior, SetsANodeApartByItsFailuresHoweverFewOthersThereAre) {
  for (const int failures : {2, 3, 12}) {
    for (const int count : {2, 3, 4, 10, 1000}) {
      std::vector<NodeHistory> nodes(static_cast<std::size_t>(count), {0, 30 * kDay});
      nodes[0].failures = failures;
      const auto prior = moment_rate_prior(nodes);
      ASSERT_TRUE(prior);
      const FailureRate more = updated(*prior, nodes[0]).mean() - updated(*prior, nodes[1]).mean();
      EXPECT_NEAR(more * kDay, (failures - 1) / 30.0, 1e-9) << count << " nodes";
    }
  }
}

TEST(MomentRatePrior, HasTheLargestShapeWhereNodesAreAlikeAndRefusesNoFailures) {
  const auto alike = moment_rate_prior(std::vector<NodeHistory>(100, {1, kDay}));
  ASSERT_TRUE(alike);
  EXPECT_EQ(alike->shape, kShapeMax);
  EXPECT_NEAR(alike->mean() * kDay, 1, 1e-9);
  EXPECT_FALSE(moment_rate_prior(std::vector<NodeHistory>(2, {0, kDay})));
}

TEST(HistoryOf, CountsTheFailuresOfTheTimeThatIsRemembered) {
  const std::vector<Seconds> failures = {1 * kDay, 8 * kDay, 9.5 * kDay, 12 * kDay};
  const NodeHistory all = history_of(failures, {}, 10 * kDay, 90 * kDay);
  EXPECT_EQ(all.failures, 3) << "the last is still to come";
  EXPECT_EQ(all.exposure, 10 * kDay);
  const NodeHistory recent = history_of(failures, {}, 10 * kDay, 3 * kDay);
  EXPECT_EQ(recent.failures, 2);
  EXPECT_EQ(recent.exposure, 3 * kDay);
}

TEST(Updated, MovesFromThePriorToTheHistoryOfTheNode) {
  const RateBelief prior{2, 100 * kDay};
  EXPECT_NEAR(updated(prior, {3, 100 * kDay}).mean() * kDay, 5.0 / 200, 1e-12);
  EXPECT_NEAR(updated(prior, {300, 10000 * kDay}).mean() * kDay, 0.03, 1e-3);
}

TEST(FailureProbability, IsTheMeanOverTheBelievedRates) {
  // 1 - E[exp(-rate h)] of an exponential belief (shape 1) with mean m: m h / (1 + m h).
  EXPECT_NEAR(failure_probability({1, 10 * kDay}, 5 * kDay), 0.5 / 1.5, 1e-12);
}

TEST(FitRiskModel, FindsTheFactorsOfCovariates) {
  std::vector<RiskCell> cells;
  for (const double hot : {0.0, 1.0})
    for (const double old : {0.0, 1.0, 2.0})
      cells.push_back({{hot, old}, 1e5 * std::pow(3.0, hot) * std::pow(1.5, old), 1e5 * kDay});
  const auto model = fit_risk_model(cells);
  ASSERT_TRUE(model);
  EXPECT_NEAR(model->factor(0), 3, 1e-3);
  EXPECT_NEAR(model->factor(1), 1.5, 1e-3);
  EXPECT_NEAR(model->base * kDay, 1, 1e-3);
  const std::vector<double> covariates = {1, 2};
  EXPECT_NEAR(model->rate(covariates) * kDay, 6.75, 0.01);
}

TEST(PriorOf, HasTheRateOfTheModelAndGivesWayToTheHistory) {
  const RiskModel model{rate_of(1, 100 * kDay), {std::log(2.0)}};
  const std::vector<double> hot = {1};
  const RateBelief prior = prior_of(model, hot, 0.5);
  EXPECT_NEAR(prior.mean() * kDay, 0.02, 1e-12);
  EXPECT_NEAR(updated(prior, {0, 25 * kDay}).mean() * kDay, 0.01, 1e-12);
}

TEST(FitRiskModel, KeepsTheFactorOfARareCovariateFinite) {
  const std::vector<RiskCell> cells = {{{0}, 50, 1000 * kDay}, {{1}, 0, kDay}};
  const auto model = fit_risk_model(cells);
  ASSERT_TRUE(model);
  EXPECT_GT(model->factor(0), 0.5);
  EXPECT_LT(model->factor(0), 1);
}

TEST(FitRiskModel, RefusesCellsThatDifferAndAHistoryWithoutFailures) {
  const std::vector<RiskCell> uneven = {{{0}, 1, kDay}, {{}, 1, kDay}};
  EXPECT_FALSE(fit_risk_model(uneven));
  const std::vector<RiskCell> none = {{{0}, 0, kDay}};
  EXPECT_FALSE(fit_risk_model(none));
  EXPECT_FALSE(fit_risk_model({}));
}

}  // namespace
}  // namespace regatta::reliability
