// mixing/duty_profile.h: what a workload needs of a device's compute, as a distribution and a day's
// curve: for workloads that are to share a device before they were measured together. Pure.
#pragma once

#include <span>
#include <vector>

#include "regatta/base/core/result.h"
#include "regatta/base/core/units.h"

namespace regatta::mixing {

// Shares of a whole device, measured where the workload has it alone.
struct DutyProfile {
  std::vector<float> shares;  // equally likely, rising, 0 to 1; empty: not known
  // Mean of equal parts of a day, over the mean of the day; the first part begins at time 0. Empty:
  // all parts are alike.
  std::vector<float> day;

  bool is_known() const { return !shares.empty(); }
};

inline constexpr int kDutyShares = 32;    // that profile_of() keeps
inline constexpr int kDayPartsMax = 288;  // of DutyProfile::day

// Mean share of the day, and in the part of the day that holds `time`; 1 where nothing is known.
double mean_share(const DutyProfile& profile);
double mean_share(const DutyProfile& profile, Seconds time);

// The profile of a measured series without kAbsent; its first interval begins at `start`. It has a
// day's curve of 24 parts where the series covers one. A share is the mean of as many intervals as
// the others, so that the mean stays; shares beyond a whole device once the curve is taken out are
// cut.
DutyProfile profile_of(std::span<const float> demand, Seconds interval, Seconds start);

// A series of a whole number of days from time 0 with the profile's distribution: its shares in an
// order that `seed` draws, all once before one comes again, scaled by the curve of the day, at most
// 1. Series of different seeds are independent. A profile that is not known is 1 at all times.
std::vector<float> draw_series(const DutyProfile& profile, int days, Seconds interval,
                               unsigned seed);

// Fails with kInvalidInput, a sentence without the workload's name: shares outside 0 to 1 or not
// rising, curves with negative parts or more than kDayPartsMax, or with a mean that is not 1 within
// 2 %.
Status check_duty(const DutyProfile& profile);

}  // namespace regatta::mixing
