// mixing/demand_forecast.h: what demand will be when reclaimed devices are back, from what was seen
// until now; and devices that a service lends by night.
#pragma once

#include <span>
#include <vector>

#include "regatta/base/core/result.h"
#include "regatta/base/core/units.h"

namespace regatta::mixing {

// Intervals are those of the series.
struct ForecastOptions {
  int lead = 5;            // intervals ahead
  double quantile = 0.95;  // share of the demands that are at most the forecast
  int level_window = 10;   // last intervals whose mean is the level
  int trend_window = 30;   // last intervals whose slope is the trend
  int error_window = 240;  // last forecasts whose errors give the quantile
  int day = 1440;          // intervals of a season; used once that many have been seen
};

// For each interval t, the quantile of the highest demand in the intervals t + 1 to t + lead, from
// intervals up to t alone. The centre is the level and the trend over half the lead, at least the
// mean of the last three; where a day was seen, it is the highest demand of the same intervals
// yesterday, scaled by the level over yesterday's level, where that was above a tenth of the
// highest. Errors of past forecasts, as a share of the centre plus the mean so far, give the
// quantile; the first few forecasts are infinite.
std::vector<double> forecast_series(std::span<const double> demand, const ForecastOptions& options);

// Its last `count` values, or all where there are fewer, for those who need only what holds now.
// Time: O(demand + day + (error_window + lead + count) * (trend_window + lead)).
std::vector<double> latest_forecasts(std::span<const double> demand, const ForecastOptions& options,
                                     int count);

// Options for intervals of this length > 0, with a lead of at least one of them: the windows of
// level and trend and the day last as long as those of minutes do, and as many errors are kept.
ForecastOptions forecast_options(Seconds interval, Seconds lead, double quantile);

struct TidalOptions {
  ForecastOptions forecast;
  double demand_per_device = 1;
  int devices = 1;  // of the service; demand beyond all of them is not its fault
  int hold = 15;    // intervals for which devices must be too many before they are lent
};

struct TidalUse {
  double intervals = 0;
  double missed_share = 0;          // intervals with fewer devices than demand needs
  double lent_share = 0;            // of the device intervals: at work for others
  double lent_share_of_oracle = 0;  // of one that knows all demand and reclaims as late as it can
  int reclaims = 0;                 // devices that were asked back
  int ramps = 0;         // rises of the needed devices by a quarter of all within an hour
  int missed_ramps = 0;  // ramps with more missed intervals than the budget's share
};

// Plays a service that lends the devices beyond its forecast and asks for them `lead` intervals
// before they compute for it again. `missed_share` is the budget, for missed_ramps. kInvalidInput:
// an empty series, a lead, window, hold or number of devices below 1, a quantile outside 0 to 1.
Result<TidalUse> replay_tidal(std::span<const double> demand, const TidalOptions& options,
                              double missed_share);

}  // namespace regatta::mixing
