#include "regatta/platform/reliability/internal/risk_trial.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "regatta/base/core/ids.h"

namespace regatta::reliability {
namespace {

// The fate of a unit in the window behind a time.
struct Window {
  bool has_failed = false;
  Seconds exposure;  // until the failure, the end of the stay or of the window
};

Window window_of(const LoggedUnit& unit, const LoggedStay& stay, Seconds time, Seconds horizon) {
  Window window{false, std::min(stay.end, time + horizon) - time};
  for (const LoggedFailure& failure : unit.failures) {
    if (failure.start <= time || failure.start > time + horizon) continue;
    window.has_failed = true;
    window.exposure = std::min(window.exposure, failure.start - time);
    break;
  }
  return window;
}

struct CellSum {
  double failures = 0;
  double exposure = 0;
};
using Cells = std::map<std::vector<double>, CellSum>;

// All units in service at `time`, by covariates.
Cells cells_at(const FailureLog& log, const RiskTrial& trial, Seconds time) {
  Cells cells;
  for (const LoggedUnit& unit : log.units) {
    const LoggedStay* const stay = unit.in_service(time);
    if (stay == nullptr) continue;
    const Window window = window_of(unit, *stay, time, trial.horizon);
    CellSum& cell = cells[trial.covariates.at(unit, *stay, time)];
    cell.failures += window.has_failed ? 1 : 0;
    cell.exposure += window.exposure.value;
  }
  return cells;
}

// Failures and time in service of a unit before `time`.
NodeHistory history_before(const LoggedUnit& unit, Seconds time) {
  NodeHistory history;
  for (const LoggedStay& stay : unit.stays)
    if (stay.start < time) history.exposure += std::min(stay.end, time) - stay.start;
  for (const LoggedFailure& failure : unit.failures) {
    if (failure.start >= time) continue;
    ++history.failures;
    history.exposure -= std::min(failure.end, time) - failure.start;
  }
  return history;
}

class TrialRun {
 public:
  TrialRun(const FailureLog& log, const RiskTrial& trial) : log_(log), trial_(trial) {}

  Result<std::vector<Forecast>> run() {
    std::vector<Forecast> forecasts;
    bool is_fitted = false;
    for (int step = 0;; ++step) {
      const Seconds time = trial_.first_forecast + trial_.step * step;
      if (time + trial_.horizon > log_.end) return forecasts;
      if (!is_fitted || trial_.is_refitted) REGATTA_TRY_DO(fit(time));
      is_fitted = true;
      for (const LoggedUnit& unit : log_.units) {
        const LoggedStay* const stay = unit.in_service(time);
        if (stay == nullptr) continue;
        forecasts.push_back({probability(unit, *stay, time),
                             window_of(unit, *stay, time, trial_.horizon).has_failed});
      }
    }
  }

 private:
  Status fit(Seconds time) {
    if (trial_.method == RiskMethod::kGammaPoisson) {
      std::vector<NodeHistory> histories;
      for (const LoggedUnit& unit : log_.units)
        if (!unit.stays.empty() && unit.stays.front().start < time)
          histories.push_back(history_before(unit, time));
      REGATTA_TRY(prior, fit_rate_prior(histories));
      prior_ = prior;
      return {};
    }
    Cells sums;
    for (int step = 0;; ++step) {
      const Seconds start = time - trial_.horizon - trial_.step * step;
      if (start.value <= 0 || start < time - trial_.lookback) break;
      const double weight = std::exp(-((time - start) / trial_.decay));
      for (const auto& [covariates, cell] : known_cells(start)) {
        CellSum& sum = sums[covariates];
        sum.failures += weight * cell.failures;
        sum.exposure += weight * cell.exposure;
      }
    }
    std::vector<RiskCell> cells;
    cells.reserve(sums.size());
    for (const auto& [covariates, sum] : sums)
      cells.push_back({covariates, sum.failures, {sum.exposure}});
    REGATTA_TRY(model, fit_risk_model(cells));
    model_ = model;
    return {};
  }

  // Windows are asked for again at each later fit; their starts repeat where the horizon is a
  // multiple of the step.
  const Cells& known_cells(Seconds start) {
    const auto found = cells_.find(start.value);
    if (found != cells_.end()) return found->second;
    RiskTrial plain = trial_;
    if (trial_.method == RiskMethod::kBaseRate) plain.covariates = {};
    return cells_.emplace(start.value, cells_at(log_, plain, start)).first->second;
  }

  double probability(const LoggedUnit& unit, const LoggedStay& stay, Seconds time) const {
    if (trial_.method == RiskMethod::kGammaPoisson)
      return failure_probability(updated(prior_, history_before(unit, time)), trial_.horizon);
    const FailureRate rate = trial_.method == RiskMethod::kBaseRate
                                 ? model_.base
                                 : model_.rate(trial_.covariates.at(unit, stay, time));
    return -std::expm1(-(rate * trial_.horizon));
  }

  const FailureLog& log_;
  const RiskTrial& trial_;
  RateBelief prior_;
  RiskModel model_;
  std::map<double, Cells> cells_;
};

}  // namespace

std::vector<double> RiskCovariates::at(const LoggedUnit& unit, const LoggedStay& stay,
                                       Seconds time) const {
  std::vector<double> values;
  int failures = 0;
  Seconds last{};
  for (const LoggedFailure& failure : unit.failures)
    if (failure.start <= time) {
      ++failures;
      last = failure.end;
    }
  bool is_counted = failures == 0;
  for (const Seconds limit : recent) {
    const bool is_here = !is_counted && time - last < limit;
    values.push_back(is_here ? 1 : 0);
    is_counted = is_counted || is_here;
  }
  if (!recent.empty()) values.push_back(is_counted ? 0 : 1);
  if (has_repeats) values.push_back(failures >= 2 ? 1 : 0);
  const Seconds age = time - unit.stays.front().start;
  for (const Seconds limit : ages)
    values.push_back(age >= limit ? 1 : 0);
  for (const int place : places)
    values.push_back(stay.place == place ? 1 : 0);
  for (const std::string& batch : batches)
    values.push_back(unit.batch == batch ? 1 : 0);
  return values;
}

Result<std::vector<Forecast>> run_risk_trial(const FailureLog& log, const RiskTrial& trial) {
  return TrialRun(log, trial).run();
}

ReturnedUnits count_returns(const FailureLog& log, Seconds begin, Seconds end, Seconds horizon) {
  ReturnedUnits counts;
  for (const LoggedUnit& unit : log.units)
    for (const LoggedFailure& failure : unit.failures) {
      const Seconds back = failure.end;
      if (back < begin || back >= std::min(end, log.end - horizon)) continue;
      // A failure that overlaps another has not ended in service.
      if (unit.in_service(back) == nullptr) continue;
      ++counts.returns;
      const bool has_failed =
          std::any_of(unit.failures.begin(), unit.failures.end(), [&](const LoggedFailure& next) {
            return next.start > back && next.start <= back + horizon;
          });
      counts.failed_again += has_failed ? 1 : 0;
    }
  return counts;
}

}  // namespace regatta::reliability
