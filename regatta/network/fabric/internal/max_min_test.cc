#include "regatta/network/fabric/internal/max_min.h"

#include <algorithm>
#include <random>
#include <string>

#include <gmock/gmock.h>

#include "regatta/network/fabric/test_sharing.h"

namespace regatta::fabric {
namespace {

using testing::DoubleNear;
using testing::ElementsAre;

double weight_of(const Sharing& sharing, std::size_t flow) {
  return sharing.weights.empty() ? 1 : sharing.weights[flow];
}
double amount_of(const Sharing& sharing, std::size_t crossing) {
  return sharing.amounts.empty() ? 1 : sharing.amounts[crossing];
}

// Why the rates are not max-min fair; "" where they are. A flow is held back by its limit, or by a
// link that is full and on which no flow has a higher level: rates with that are the only ones
// (Bertsekas and Gallager, "Data Networks", 1992, section 6.5.2).
std::string what_is_unfair(const Sharing& sharing, const std::vector<double>& rates) {
  constexpr double kExact = 1e-9;
  std::vector<double> used(sharing.capacity.size(), 0);
  std::vector<double> highest(sharing.capacity.size(), 0);
  for (std::size_t flow = 0; flow < sharing.flows(); ++flow) {
    for (std::size_t at = sharing.first[flow]; at < sharing.first[flow + 1]; ++at) {
      const std::uint32_t link = sharing.links[at];
      used[link] += rates[flow] * amount_of(sharing, at);
      highest[link] = std::max(highest[link], rates[flow] / weight_of(sharing, flow));
    }
  }
  for (std::size_t link = 0; link < used.size(); ++link)
    if (used[link] > sharing.capacity[link] * (1 + kExact))
      return "link " + std::to_string(link) + " is used beyond its capacity";
  for (std::size_t flow = 0; flow < sharing.flows(); ++flow) {
    const double limit = sharing.limits.empty() ? kNoLimit : sharing.limits[flow];
    if (rates[flow] > limit) return "flow " + std::to_string(flow) + " is above its limit";
    bool is_held = rates[flow] == limit;
    for (std::size_t at = sharing.first[flow]; at < sharing.first[flow + 1] && !is_held; ++at) {
      const std::uint32_t link = sharing.links[at];
      is_held = used[link] >= sharing.capacity[link] * (1 - kExact) &&
                rates[flow] / weight_of(sharing, flow) >= highest[link] * (1 - kExact);
    }
    if (!is_held) return "nothing holds flow " + std::to_string(flow) + " back";
  }
  return "";
}

TEST(MaxMin, DividesALinkEvenly) {
  Sharing sharing;
  const std::uint32_t link = sharing.add_link(90);
  for (int i = 0; i < 3; ++i)
    sharing.add_flow(std::vector{link});
  EXPECT_THAT(max_min_rates(sharing), ElementsAre(30, 30, 30));
}

// Figure 6.12 of Bertsekas and Gallager has the same idea: a long flow and local ones.
TEST(MaxMin, GivesWhatOneCannotUseToTheOthers) {
  Sharing sharing;
  const std::uint32_t narrow = sharing.add_link(10);
  const std::uint32_t wide = sharing.add_link(100);
  sharing.add_flow(std::vector{narrow, wide});
  sharing.add_flow(std::vector{narrow});
  sharing.add_flow(std::vector{wide});
  EXPECT_THAT(max_min_rates(sharing), ElementsAre(5, 5, 95));
}

TEST(MaxMin, HoldsFlowsToTheirLimitsAndWeights) {
  Sharing sharing;
  const std::uint32_t link = sharing.add_link(100);
  for (int i = 0; i < 3; ++i)
    sharing.add_flow(std::vector{link});
  sharing.limits = {10, kNoLimit, kNoLimit};
  sharing.weights = {1, 1, 2};
  EXPECT_THAT(max_min_rates(sharing), ElementsAre(10, 30, 60));
}

TEST(MaxMin, TakesAnAmountForSeveralFlowsAlike) {
  Sharing sharing;
  const std::uint32_t link = sharing.add_link(100);
  sharing.add_flow(std::vector{link});
  sharing.add_flow(std::vector{link});
  sharing.amounts = {3, 1};
  EXPECT_THAT(max_min_rates(sharing), ElementsAre(25, 25));
}

TEST(MaxMin, LeavesFlowsFreeThatNothingHoldsBack) {
  Sharing sharing;
  const std::uint32_t free = sharing.add_link(kNoLimit);
  sharing.add_flow(std::vector<std::uint32_t>{});
  sharing.add_flow(std::vector{free});
  sharing.add_flow(std::vector{sharing.add_link(0)});
  EXPECT_THAT(max_min_rates(sharing), ElementsAre(kNoLimit, kNoLimit, 0));
  EXPECT_THAT(max_min_rates({}), ElementsAre());
}

TEST(MaxMin, IsFairOnDrawnInstances) {
  std::mt19937_64 random(20261122);
  for (unsigned i = 0; i < 4000; ++i) {
    const Sharing sharing = draw_sharing(
        random,
        {.has_weights = (i & 1U) != 0, .has_amounts = (i & 2U) != 0, .has_limits = (i & 4U) != 0});
    ASSERT_EQ(what_is_unfair(sharing, max_min_rates(sharing)), "") << "instance " << i;
  }
}

TEST(MaxMin, DoesNotDependOnTheOrderOfFlows) {
  std::mt19937_64 random(7);
  for (int i = 0; i < 200; ++i) {
    const Sharing sharing = draw_sharing(random, {});
    Sharing backwards{.capacity = sharing.capacity};
    for (std::size_t flow = sharing.flows(); flow-- > 0;)
      backwards.add_flow(std::vector(sharing.links.begin() + sharing.first[flow],
                                     sharing.links.begin() + sharing.first[flow + 1]));
    const std::vector<double> rates = max_min_rates(sharing);
    const std::vector<double> others = max_min_rates(backwards);
    for (std::size_t flow = 0; flow < rates.size(); ++flow)
      ASSERT_THAT(others[rates.size() - 1 - flow], DoubleNear(rates[flow], 1e-9 * rates[flow]));
  }
}

}  // namespace
}  // namespace regatta::fabric
