// reliability/internal/risk_trial.h: forecasts of failures on a recorded log, made at times of a
// test from what was known then.
#pragma once

#include <string>
#include <vector>

#include "regatta/base/core/result.h"
#include "regatta/base/core/units.h"
#include "regatta/platform/reliability/failure_log.h"
#include "regatta/platform/reliability/internal/forecast_score.h"
#include "regatta/platform/reliability/node_risk.h"

namespace regatta::reliability {

// Each is an indicator, 0 or 1.
struct RiskCovariates {
  // Time since the last failure ended is below this one and not below the one before; rising. The
  // last indicator is any failure before.
  std::vector<Seconds> recent;
  bool has_repeats = false;   // two failures or more
  std::vector<Seconds> ages;  // time since first in service is at least this
  std::vector<int> places;    // of the stay
  std::vector<std::string> batches;

  // The values of a unit at a time at which it is in service, from what is known then.
  std::vector<double> at(const LoggedUnit& unit, const LoggedStay& stay, Seconds time) const;
};

enum class RiskMethod {
  kBaseRate,      // each unit has the rate of all
  kGammaPoisson,  // the belief from its own failures and exposure
  kRegression,    // fit_risk_model() of the covariates
};

struct RiskTrial {
  RiskMethod method = RiskMethod::kRegression;
  RiskCovariates covariates;
  Seconds horizon;         // a forecast is of a failure within it
  Seconds step;            // between forecasts
  Seconds first_forecast;  // what ended before is training alone
  // Fitted anew at each forecast from windows that have ended, back to `lookback`, with weights
  // exp(-age / decay). Without it, fitted once at the first forecast.
  bool is_refitted = true;
  Seconds lookback;
  Seconds decay;
};

// A forecast of each unit in service at each time whose window ends within the log. Fails where
// nothing failed before the first.
Result<std::vector<Forecast>> run_risk_trial(const FailureLog& log, const RiskTrial& trial);

// Units that came back from repair, and their fate.
struct ReturnedUnits {
  int returns = 0;
  int failed_again = 0;  // within the horizon
};

// Those back in [begin, end), where the horizon ends within the log.
ReturnedUnits count_returns(const FailureLog& log, Seconds begin, Seconds end, Seconds horizon);

}  // namespace regatta::reliability
