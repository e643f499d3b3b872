#include "regatta/platform/reliability/spares.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace regatta::reliability {

double erlang_b(int servers, double load) {
  double blocked = 1;
  for (int i = 1; i <= servers; ++i)
    blocked = load * blocked / (i + load * blocked);
  return blocked;
}

double wait_share(const SparePool& pool, int spares) {
  return erlang_b(spares + 1, pool.node_loss * pool.repair);
}

double cost_of_spares(const SparePool& pool, int spares) {
  return (pool.nodes + spares * pool.spare_price) / (pool.nodes * (1 - wait_share(pool, spares)));
}

int spares_needed(const SparePool& pool) {
  // Erlang's B formula is convex in the servers (Harel, 1990), so the cost falls, then rises;
  // beyond the load and ten of its standard deviations nothing waits any more.
  const double load = pool.node_loss * pool.repair;
  const int most = static_cast<int>(load + 10 * std::sqrt(load) + 10);
  int best = 0;
  for (int spares = 1; spares <= most; ++spares)
    if (cost_of_spares(pool, spares) < cost_of_spares(pool, best)) best = spares;
  return best;
}

Result<int> spares_for_share(const SparePool& pool, double share) {
  if (!(share > 0 && share < 1))
    return Error{Code::kInvalidInput,
                 fmt::format("spares: share {} of the time; give one between 0 and 1", share)};
  const double load = pool.node_loss * pool.repair;
  double sum = 0;
  for (int spares = 0;; ++spares) {
    sum += std::exp(spares * std::log(load) - load - std::lgamma(spares + 1.0));
    if (load <= 0 || sum >= share || spares > load + 40 * std::sqrt(load) + 40) return spares;
  }
}

Seconds wait_for_lack_of_one(const SparePool& pool, int spares, Seconds horizon) {
  if (spares <= 0) return horizon;
  return horizon * (wait_share(pool, spares - 1) - wait_share(pool, spares));
}

}  // namespace regatta::reliability
