// mixing/interference.h: how much jobs on one GPU slow each other beyond sharing its time. A job
// that is on the device for a share u of the time needs u (1 + k v) beside jobs that are on it for
// a share v. The factor k is fitted to measured throughputs of pairs of jobs. Source of such
// measurements: Narayanan et al., "Heterogeneity-aware cluster scheduling policies for deep
// learning workloads", OSDI 2020 (github.com/stanford-futuredata/gavel, MIT).
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "regatta/base/core/result.h"

namespace regatta::mixing {

// The need of jobs that are together on a device, in shares of it. `sum` and `sum_of_squares` are
// those of the demands alone, `k` is the factor. 1 is the capacity.
inline float mixed_demand(float sum, float sum_of_squares, float k) {
  return sum + k * (std::min(sum, 1.0F) * sum - sum_of_squares);
}

// Whether a need is more than a device has, with room for rounding.
inline bool exceeds_device(float need) {
  return need > 1.00001F;
}

// Two jobs together on one device: throughput of each over its throughput alone.
struct JobPair {
  std::string device;  // the model of GPU
  std::string job;
  std::string other;
  double speed = 0;
  double other_speed = 0;
};

struct InterferenceFit {
  double interference = 0;  // k
  int fitted_pairs = 0;     // pairs that k and the duty of each job were fitted to
  int held_out_pairs = 0;
  double held_out_error = 0;  // mean |predicted - measured| of the sum of both speeds
  double error_without = 0;   // the same with k = 0
  double error_constant = 0;  // the same when the mean of the fitted pairs is predicted
};

// Fits k, from 0 to 2, and the unknown duty of each job to pairs of one device: least squares of
// the sum of speeds. Two jobs that need more than the device get equal parts of its time, and what
// one leaves the other gets. A share `held_out` of the pairs, drawn by `seed`, is not used. Pairs
// with a speed of 0 did not fit together and are left out. kInvalidInput below 20 pairs.
Result<InterferenceFit> fit_interference(std::span<const JobPair> pairs, double held_out,
                                         std::uint64_t seed);

}  // namespace regatta::mixing
