// reliability/internal/random_times.h: times drawn from distributions.
// Source: Devroye, "Non-Uniform Random Variate Generation", 1986, sections 2.2 (inversion) and 5.4
// (normal numbers in polar form).
#pragma once

#include <cmath>
#include <limits>
#include <numbers>

#include "regatta/base/core/units.h"
#include "regatta/platform/packing/random_sequence.h"
#include "regatta/platform/reliability/failure_mix.h"

namespace regatta::reliability {

// Time until the next event of that rate; endless (infinity) where it is 0.
inline Seconds exponential_time(packing::RandomSequence& random, FailureRate rate) {
  const double drawn = -std::log1p(-random.uniform());
  if (rate.value <= 0) return {std::numeric_limits<double>::infinity()};
  return {drawn / rate.value};
}

// Lognormal with that median and mean >= median > 0.
inline Seconds lognormal_time(packing::RandomSequence& random, Seconds median, Seconds mean) {
  const double radius = std::sqrt(-2 * std::log1p(-random.uniform()));
  const double normal = radius * std::cos(2 * std::numbers::pi * random.uniform());
  return median * std::exp(std::sqrt(2 * std::log(mean / median)) * normal);
}

}  // namespace regatta::reliability
