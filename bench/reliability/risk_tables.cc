#include "bench/reliability/risk_tables.h"

#include <cmath>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "regatta/platform/reliability/failure_mix.h"
#include "regatta/platform/reliability/internal/risk_trial.h"

namespace regatta::reliability {
namespace {

constexpr Seconds kYear2017{1483228800};  // 2017-01-01
constexpr Seconds kFirstTestDay = 155 * kDay;

using NamedTrials = std::vector<std::pair<std::string, RiskTrial>>;

const std::vector<std::string> kColumns = {"forecast",     "AUC",  "top 1 %: precision %",
                                           "recall %",     "lift", "top 5 %: precision %",
                                           "recall %",     "lift", "Brier",
                                           "Brier skill %"};

std::vector<std::string> score_row(const std::string& name, const ForecastScore& score) {
  std::vector<std::string> row = {name, fmt::format("{:.3f}", score.auc)};
  for (const TopShare& top : {score.top_percent, score.top_5_percent}) {
    row.push_back(fmt::format("{:.1f}", 100 * top.precision));
    row.push_back(fmt::format("{:.1f}", 100 * top.recall));
    row.push_back(fmt::format("{:.1f}", top.lift));
  }
  row.push_back(fmt::format("{:.5f}", score.brier));
  row.push_back(fmt::format("{:.2f}", 100 * score.brier_skill));
  return row;
}

// A trial differs from the one before it by this.
struct TrialChange {
  const char* name;
  std::function<void(RiskTrial&)> apply;
};

// The base rate, the changes one after the other, and the last of them fitted once, to `fitted_to`.
NamedTrials refined_trials(RiskTrial trial, const std::vector<TrialChange>& changes,
                           const std::string& fitted_to) {
  NamedTrials trials;
  trial.method = RiskMethod::kBaseRate;
  trials.emplace_back("base rate", trial);
  for (const TrialChange& change : changes) {
    change.apply(trial);
    trials.emplace_back(change.name, trial);
  }
  trial.is_refitted = false;
  trials.emplace_back("the same, fitted once, to " + fitted_to, trial);
  return trials;
}

NamedTrials gpu_trials(Seconds horizon) {
  RiskTrial trial;
  trial.horizon = horizon;
  trial.step = 45 * kDay;
  trial.first_forecast = kYear2017;
  trial.lookback = 720 * kDay;
  trial.decay = 240 * kDay;
  return refined_trials(
      trial,
      {{"Gamma-Poisson, own history", [](RiskTrial& t) { t.method = RiskMethod::kGammaPoisson; }},
       {"repeat offender",
        [](RiskTrial& t) {
          t.method = RiskMethod::kRegression;
          t.covariates.recent = {45 * kDay, 180 * kDay};
          t.covariates.has_repeats = true;
        }},
       {"and age",
        [](RiskTrial& t) {
          for (int half_years = 1; half_years <= 8; ++half_years)
            t.covariates.ages.push_back(half_years * 182.5 * kDay);
        }},
       {"and age, cage, batch",
        [](RiskTrial& t) {
          t.covariates.places = {1, 2};
          t.covariates.batches = {"0320", "0321", "0322", "0323", "0324", "0325"};
        }}},
      "2016");
}

NamedTrials server_trials(Seconds horizon) {
  RiskTrial trial;
  trial.horizon = horizon;
  trial.step = 6 * kHour;
  trial.first_forecast = kFirstTestDay;
  trial.lookback = 400 * kDay;
  trial.decay = 60 * kDay;
  return refined_trials(trial,
                        {{"repeat offender",
                          [](RiskTrial& t) {
                            t.method = RiskMethod::kRegression;
                            t.covariates.recent = {30 * kDay};
                          }},
                         {"time since repair, repeats",
                          [](RiskTrial& t) {
                            t.covariates.recent = {kDay / 4, kDay, 7 * kDay, 30 * kDay};
                            t.covariates.has_repeats = true;
                          }}},
                        "day 155");
}

ResultTable calibration_table(const std::string& title, const ForecastScore& score) {
  ResultTable table{title, {"tenth", "forecast %", "observed %"}, {}};
  for (std::size_t bin = 0; bin < score.deciles.size(); ++bin)
    table.rows.push_back({std::to_string(bin + 1),
                          fmt::format("{:.3f}", 100 * score.deciles[bin].forecast),
                          fmt::format("{:.3f}", 100 * score.deciles[bin].observed)});
  return table;
}

// The scores of the trials, and the calibration of the one before the last, which is fitted anew.
Status add_tables(const std::string& what, const FailureLog& log, const NamedTrials& trials,
                  std::vector<ResultTable>& tables) {
  ResultTable table{"", kColumns, {}};
  ForecastScore refitted;
  for (std::size_t i = 0; i < trials.size(); ++i) {
    REGATTA_TRY(forecasts, run_risk_trial(log, trials[i].second));
    const ForecastScore score = score_forecasts(forecasts);
    table.title = fmt::format("{}: {} forecasts, {} failures ({:.2f} %)", what, score.forecasts,
                              score.failures, 100 * score.base_rate);
    table.rows.push_back(score_row(trials[i].first, score));
    if (i + 2 == trials.size()) refitted = score;
  }
  tables.push_back(table);
  tables.push_back(calibration_table(
      fmt::format("{}: calibration of '{}'", what, trials[trials.size() - 2].first), refitted));
  return {};
}

ResultTable returned_table(const FailureLog& servers) {
  ResultTable table{
      "InfiniteHBD: servers back from repair that fail again",
      {"within", "before day 155: %", "of", "from day 155: %", "of", "any server from day 155: %"},
      {}};
  for (const double days : {1.0, 7.0, 30.0}) {
    std::vector<std::string> row = {fmt::format("{} d", days)};
    for (const auto& [begin, end] : {std::pair{Seconds{}, kFirstTestDay - days * kDay},
                                     std::pair{kFirstTestDay, servers.end}}) {
      const ReturnedUnits units = count_returns(servers, begin, end, days * kDay);
      row.push_back(fmt::format("{:.1f}", 100.0 * units.failed_again / std::max(1, units.returns)));
      row.push_back(std::to_string(units.returns));
    }
    int failures = 0;
    for (const LoggedUnit& unit : servers.units)
      for (const LoggedFailure& failure : unit.failures)
        failures += failure.start >= kFirstTestDay ? 1 : 0;
    const double rate = failures / ((servers.end - kFirstTestDay) / kDay) /
                        static_cast<double>(servers.units.size());
    row.push_back(fmt::format("{:.1f}", -100 * std::expm1(-rate * days)));
    table.rows.push_back(row);
  }
  return table;
}

}  // namespace

Result<std::vector<ResultTable>> risk_tables(const FailureLog& gpus, const FailureLog& servers) {
  std::vector<ResultTable> tables;
  for (const int days : {30, 90})
    REGATTA_TRY_DO(add_tables(fmt::format("Titan, within {} days", days), gpus,
                              gpu_trials(days * kDay), tables));
  for (const int days : {1, 7, 30})
    REGATTA_TRY_DO(add_tables(fmt::format("InfiniteHBD, within {} d", days), servers,
                              server_trials(days * kDay), tables));
  tables.push_back(returned_table(servers));
  return tables;
}

}  // namespace regatta::reliability
