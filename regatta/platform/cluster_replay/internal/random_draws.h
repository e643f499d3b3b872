// cluster_replay/internal/random_draws.h: random times.
#pragma once

#include <algorithm>
#include <cmath>

#include "regatta/base/core/units.h"
#include "regatta/platform/packing/random_sequence.h"
#include "regatta/platform/sched/job_request.h"

namespace regatta::cluster_replay {

// At least 0; of mean `mean`.
inline double exponential(packing::RandomSequence& random, double mean) {
  return -mean * std::log1p(-random.uniform());
}

// `log_spread` is the standard deviation of the logarithm.
inline Seconds log_normal(packing::RandomSequence& random, Seconds median, double log_spread) {
  const double quantile = std::clamp(random.uniform(), 1e-12, 1 - 1e-12);
  return median * std::exp(log_spread * sched::normal_quantile(quantile));
}

}  // namespace regatta::cluster_replay
