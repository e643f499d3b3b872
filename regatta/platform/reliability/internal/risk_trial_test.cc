#include "regatta/platform/reliability/internal/risk_trial.h"

#include <gtest/gtest.h>

#include "regatta/platform/packing/random_sequence.h"
#include "regatta/platform/reliability/internal/random_times.h"

namespace regatta::reliability {
namespace {

// Units of which each tenth fails ten times as often, seen for 400 days; place 1 doubles the rate.
FailureLog drawn_log(std::uint64_t seed) {
  packing::RandomSequence random(seed);
  FailureLog log{{}, 400 * kDay, {}};
  for (int i = 0; i < 2000; ++i) {
    LoggedUnit unit{std::to_string(i), i % 10 == 0 ? "bad" : "good", {}, {}};
    unit.stays.push_back({{}, log.end, i % 2});
    const FailureRate rate =
        rate_of((i % 10 == 0 ? 10.0 : 1.0) * (i % 2 == 1 ? 2.0 : 1.0), 2000 * kDay);
    for (Seconds at = exponential_time(random, rate); at < log.end;
         at += exponential_time(random, rate))
      unit.failures.push_back({at, at, {}});
    log.units.push_back(unit);
  }
  return log;
}

RiskTrial trial_of(RiskMethod method) {
  RiskTrial trial;
  trial.method = method;
  trial.horizon = 30 * kDay;
  trial.step = 30 * kDay;
  trial.first_forecast = 200 * kDay;
  trial.lookback = 400 * kDay;
  trial.decay = 1000 * kDay;
  return trial;
}

ForecastScore score_of(const RiskTrial& trial) {
  const auto forecasts = run_risk_trial(drawn_log(3), trial);
  EXPECT_TRUE(forecasts);
  return score_forecasts(*forecasts);
}

TEST(RunRiskTrial, RanksUnitsBetterTheMoreOfTheCauseItKnows) {
  RiskTrial once = trial_of(RiskMethod::kBaseRate);
  once.is_refitted = false;
  const double base = score_of(once).auc;
  const double history = score_of(trial_of(RiskMethod::kGammaPoisson)).auc;
  RiskTrial trial = trial_of(RiskMethod::kRegression);
  trial.covariates.batches = {"bad"};
  trial.covariates.places = {1};
  const double causes = score_of(trial).auc;
  EXPECT_DOUBLE_EQ(base, 0.5);
  EXPECT_GT(history, base + 0.1);
  EXPECT_GT(causes, history);
}

TEST(RunRiskTrial, IsCalibratedWhereTheModelIsTrue) {
  RiskTrial trial = trial_of(RiskMethod::kRegression);
  trial.covariates.batches = {"bad"};
  trial.covariates.places = {1};
  const ForecastScore score = score_of(trial);
  const CalibrationBin& most = score.deciles.back();
  EXPECT_NEAR(most.observed / most.forecast, 1, 0.15);
}

TEST(RunRiskTrial, KnowsNothingOfWhatComesAfterTheForecast) {
  FailureLog log = drawn_log(3);
  const RiskTrial trial = trial_of(RiskMethod::kGammaPoisson);
  const auto known = run_risk_trial(log, trial);
  for (LoggedUnit& unit : log.units)
    std::erase_if(unit.failures,
                  [&](const LoggedFailure& f) { return f.start > trial.first_forecast; });
  const auto blind = run_risk_trial(log, trial);
  ASSERT_TRUE(known && blind);
  for (std::size_t i = 0; i < log.units.size(); ++i)
    EXPECT_DOUBLE_EQ((*known)[i].probability, (*blind)[i].probability) << i;
}

TEST(RunRiskTrial, RefusesALogWithoutFailuresBeforeTheFirstForecast) {
  RiskTrial trial = trial_of(RiskMethod::kRegression);
  trial.first_forecast = kDay;
  EXPECT_FALSE(run_risk_trial(drawn_log(3), trial));
}

TEST(CountReturns, CountsRepairsThatDidNotHold) {
  LoggedUnit unit{"u", "", {{{}, 100 * kDay, 0}}, {}};
  unit.failures = {{10 * kDay, 11 * kDay}, {13 * kDay, 14 * kDay}, {60 * kDay, 61 * kDay}};
  const FailureLog log{{}, 100 * kDay, {unit}};
  const ReturnedUnits within_week = count_returns(log, {}, 100 * kDay, 7 * kDay);
  EXPECT_EQ(within_week.returns, 3);
  EXPECT_EQ(within_week.failed_again, 1);
  EXPECT_EQ(count_returns(log, {}, 100 * kDay, 50 * kDay).returns, 2) << "one window is not over";
}

}  // namespace
}  // namespace regatta::reliability
