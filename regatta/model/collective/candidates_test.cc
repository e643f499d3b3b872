#include "regatta/model/collective/candidates.h"

#include <gmock/gmock.h>

#include "regatta/model/cost/collective.h"

namespace regatta::collective {
namespace {

Seconds predicted(const std::vector<SettingCandidate>& ranked, Algorithm algorithm) {
  const auto found = std::ranges::find_if(
      ranked, [&](const SettingCandidate& one) { return one.setting.algorithm == algorithm; });
  EXPECT_NE(found, ranked.end());
  return found == ranked.end() ? Seconds{} : found->predicted;
}

// The ring is priced here, for a choice of algorithms, and in cost, for the steps of a plan.
TEST(RankAlgorithms, PricesTheRingAsThePlannerDoes) {
  const NetworkParameters network{.latency = {30e-6}, .rate = {2e9}};
  for (const int ranks : {2, 3, 8, 64})
    for (const long long bytes : {1LL << 20, 64LL << 20}) {
      const auto ranked =
          rank_algorithms({.kind = CallKind::kAllReduce, .bytes = static_cast<std::size_t>(bytes)},
                          {.ranks = ranks, .network = network}, Algorithm::kRing);
      const cost::CollectiveCost ring = cost::all_reduce_cost({bytes}, ranks);
      const double planned = ring.steps * network.latency.value + ring.bytes / network.rate.value;
      EXPECT_NEAR(predicted(ranked, Algorithm::kRing) / Seconds{planned}, 1, 1e-12) << ranks;
    }
}

}  // namespace
}  // namespace regatta::collective
