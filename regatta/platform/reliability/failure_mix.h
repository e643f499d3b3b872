// reliability/failure_mix.h: what interrupts training, how often, and what each failure does.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "regatta/base/core/result.h"
#include "regatta/base/core/text.h"
#include "regatta/base/core/units.h"

namespace regatta::reliability {

inline constexpr Seconds kHour{3600};
inline constexpr Seconds kDay{86400};

using FailureRate = Quantity<struct FailureRateTag, double>;  // failures a second

constexpr double operator*(FailureRate rate, Seconds time) {
  return rate.value * time.value;
}
// `time` > 0.
constexpr FailureRate rate_of(double failures, Seconds time) {
  return {failures / time.value};
}
// `rate` > 0.
constexpr Seconds time_between(FailureRate rate) {
  return {1 / rate.value};
}

enum class FailureClass { kGpu, kHost, kNetwork, kStorage, kSoftware, kFacility, kUnknown };
inline constexpr EnumNames<7> kFailureClassNames = {"gpu",      "host",     "network", "storage",
                                                    "software", "facility", "unknown"};

enum class FailureEffect {
  kRestart,  // the job restarts on the same nodes
  kRepair,   // the node is away until it is repaired
  kRelapse,  // the same, and the repair may not hold: the node may fail again soon
};

// Our choice, as no source publishes it by cause: software and unknown restart; network, storage
// and facility are repaired; the repair of a GPU or host may not hold.
FailureEffect usual_effect(FailureClass failure_class);

struct FailureCause {
  std::string name;
  FailureClass failure_class = FailureClass::kUnknown;
  FailureEffect effect = FailureEffect::kRestart;
  int count = 0;     // 0: not published
  double share = 0;  // of the mix, 0 to 1; 0: not published
  FailureRate per_device;
};

// Causes of one publication. Rates are 0 until with_rates().
struct FailureMix {
  std::string source;
  std::string population;
  std::vector<FailureCause> causes;

  int count() const;
  FailureRate per_device() const;
};

// The mixes of a table with the columns source, population (on the first row of a source), cause,
// class, count and share_pct; a population may stand in quotes. Errors name file, line and column.
Result<std::vector<FailureMix>> read_failure_mixes(std::string_view text, const std::string& file);

// The mix of that source. Fails with kNotFound, naming those that there are.
Result<FailureMix> find_failure_mix(const std::vector<FailureMix>& mixes,
                                    const std::string& source);

// The same with the rate of each cause: its count over `devices` seen for `time`. Fails with
// kInvalidInput where `devices` or `time` is not positive, or a cause has no count.
Result<FailureMix> with_rates(FailureMix mix, int devices, Seconds time);

}  // namespace regatta::reliability
