#include "regatta/platform/reliability/checkpointing.h"

#include <algorithm>
#include <cmath>

namespace regatta::reliability {

Seconds young_interval(const RestartCosts& costs) {
  return {std::sqrt(2 * costs.save.value * costs.between_failures.value)};
}

Seconds daly_first_order_interval(const RestartCosts& costs) {
  const double sum = costs.between_failures.value + costs.restart().value;
  return {std::max(0.0, std::sqrt(2 * costs.save.value * sum) - costs.save.value)};
}

Seconds daly_interval(const RestartCosts& costs) {
  const double half = costs.save / (2 * costs.between_failures);
  if (half >= 1) return costs.between_failures;
  return young_interval(costs) * (1 + std::sqrt(half) / 3 + half / 9) - costs.save;
}

Seconds exact_interval(const RestartCosts& costs) {
  // x = interval / M solves (1 - x) exp(x) = exp(-d / M); the left side falls from 1 to 0 on [0,
  // 1].
  const double goal = std::exp(-(costs.save / costs.between_failures));
  double low = 0;
  double high = 1;
  for (int i = 0; i < 100; ++i) {
    const double middle = (low + high) / 2;
    ((1 - middle) * std::exp(middle) > goal ? low : high) = middle;
  }
  return costs.between_failures * low;
}

double expected_ettr(const RestartCosts& costs, Seconds interval) {
  const Seconds mean = costs.between_failures;
  return interval / mean /
         (std::exp(costs.restart() / mean) * std::expm1((interval + costs.save) / mean));
}

double first_order_ettr(const RestartCosts& costs, Seconds interval) {
  const double failed = (costs.restart() + interval / 2) / costs.between_failures;
  return std::max(0.0, 1 - failed) / (1 + costs.save / interval);
}

LostTime lost_per_day(const RestartCosts& costs, Seconds interval) {
  const double mean = costs.between_failures.value;
  const double cycle = (interval + costs.save).value;
  // An interval that counts has exp(cycle / M) - 1 failures before it; each undoes the time since
  // the last checkpoint and is followed by restarts of (exp(R / M) - 1) M until one succeeds.
  const double failures = std::expm1(cycle / mean);
  const double restart = failures * std::expm1(costs.restart().value / mean) * mean;
  const double recompute = failures * mean - cycle;
  const double cycles_per_day = kDay.value / (cycle + recompute + restart);
  return {costs.save * cycles_per_day, Seconds{recompute * cycles_per_day},
          Seconds{restart * cycles_per_day}};
}

double ettr_with_waiting(const RestartCosts& costs, Seconds interval, double wait_share) {
  return expected_ettr(costs, interval) * (1 - wait_share);
}

}  // namespace regatta::reliability
