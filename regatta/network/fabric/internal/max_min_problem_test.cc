#include <algorithm>
#include <random>
#include <string>

#include <gmock/gmock.h>

#include "regatta/network/fabric/flow_simulation.h"
#include "regatta/network/fabric/test_max_min_problem.h"

namespace regatta::fabric {
namespace {

using testing::DoubleNear;
using testing::ElementsAre;

double weight_of(const MaxMinProblem& max_min_problem, std::size_t flow) {
  return max_min_problem.weights.empty() ? 1 : max_min_problem.weights[flow];
}
double amount_of(const MaxMinProblem& max_min_problem, std::size_t crossing) {
  return max_min_problem.amounts.empty() ? 1 : max_min_problem.amounts[crossing];
}

// Why the rates are not max-min fair; "" where they are. A flow is held back by its limit, or by a
// link that is full and on which no flow has a higher level: rates with that are the only ones
// (Bertsekas and Gallager, "Data Networks", 1992, section 6.5.2).
std::string what_is_unfair(const MaxMinProblem& max_min_problem, const std::vector<double>& rates) {
  constexpr double kExact = 1e-9;
  std::vector<double> used(max_min_problem.capacity.size(), 0);
  std::vector<double> highest(max_min_problem.capacity.size(), 0);
  for (std::size_t flow = 0; flow < max_min_problem.flows(); ++flow) {
    for (std::size_t at = max_min_problem.first[flow]; at < max_min_problem.first[flow + 1]; ++at) {
      const std::uint32_t link = max_min_problem.links[at];
      used[link] += rates[flow] * amount_of(max_min_problem, at);
      highest[link] = std::max(highest[link], rates[flow] / weight_of(max_min_problem, flow));
    }
  }
  for (std::size_t link = 0; link < used.size(); ++link)
    if (used[link] > max_min_problem.capacity[link] * (1 + kExact))
      return "link " + std::to_string(link) + " is used beyond its capacity";
  for (std::size_t flow = 0; flow < max_min_problem.flows(); ++flow) {
    const double limit = max_min_problem.limits.empty() ? kNoLimit : max_min_problem.limits[flow];
    if (rates[flow] > limit) return "flow " + std::to_string(flow) + " is above its limit";
    bool is_held = rates[flow] == limit;
    for (std::size_t at = max_min_problem.first[flow];
         at < max_min_problem.first[flow + 1] && !is_held; ++at) {
      const std::uint32_t link = max_min_problem.links[at];
      is_held = used[link] >= max_min_problem.capacity[link] * (1 - kExact) &&
                rates[flow] / weight_of(max_min_problem, flow) >= highest[link] * (1 - kExact);
    }
    if (!is_held) return "nothing holds flow " + std::to_string(flow) + " back";
  }
  return "";
}

TEST(MaxMin, DividesALinkEvenly) {
  MaxMinProblem max_min_problem;
  const std::uint32_t link = max_min_problem.add_link(90);
  for (int i = 0; i < 3; ++i)
    max_min_problem.add_flow(std::vector{link});
  EXPECT_THAT(max_min_rates(max_min_problem), ElementsAre(30, 30, 30));
}

// Figure 6.12 of Bertsekas and Gallager has the same idea: a long flow and local ones.
TEST(MaxMin, GivesWhatOneCannotUseToTheOthers) {
  MaxMinProblem max_min_problem;
  const std::uint32_t narrow = max_min_problem.add_link(10);
  const std::uint32_t wide = max_min_problem.add_link(100);
  max_min_problem.add_flow(std::vector{narrow, wide});
  max_min_problem.add_flow(std::vector{narrow});
  max_min_problem.add_flow(std::vector{wide});
  EXPECT_THAT(max_min_rates(max_min_problem), ElementsAre(5, 5, 95));
}

TEST(MaxMin, HoldsFlowsToTheirLimitsAndWeights) {
  MaxMinProblem max_min_problem;
  const std::uint32_t link = max_min_problem.add_link(100);
  for (int i = 0; i < 3; ++i)
    max_min_problem.add_flow(std::vector{link});
  max_min_problem.limits = {10, kNoLimit, kNoLimit};
  max_min_problem.weights = {1, 1, 2};
  EXPECT_THAT(max_min_rates(max_min_problem), ElementsAre(10, 30, 60));
}

TEST(MaxMin, TakesAnAmountForSeveralFlowsAlike) {
  MaxMinProblem max_min_problem;
  const std::uint32_t link = max_min_problem.add_link(100);
  max_min_problem.add_flow(std::vector{link});
  max_min_problem.add_flow(std::vector{link});
  max_min_problem.amounts = {3, 1};
  EXPECT_THAT(max_min_rates(max_min_problem), ElementsAre(25, 25));
}

TEST(MaxMin, LeavesFlowsFreeThatNothingHoldsBack) {
  MaxMinProblem max_min_problem;
  const std::uint32_t free = max_min_problem.add_link(kNoLimit);
  max_min_problem.add_flow(std::vector<std::uint32_t>{});
  max_min_problem.add_flow(std::vector{free});
  max_min_problem.add_flow(std::vector{max_min_problem.add_link(0)});
  EXPECT_THAT(max_min_rates(max_min_problem), ElementsAre(kNoLimit, kNoLimit, 0));
  EXPECT_THAT(max_min_rates({}), ElementsAre());
}

TEST(MaxMin, IsFairOnDrawnInstances) {
  std::mt19937_64 random(20261122);
  for (unsigned i = 0; i < 4000; ++i) {
    const MaxMinProblem max_min_problem = random_max_min_problem(
        random,
        {.has_weights = (i & 1U) != 0, .has_amounts = (i & 2U) != 0, .has_limits = (i & 4U) != 0});
    ASSERT_EQ(what_is_unfair(max_min_problem, max_min_rates(max_min_problem)), "")
        << "instance " << i;
  }
}

TEST(MaxMin, DoesNotDependOnTheOrderOfFlows) {
  std::mt19937_64 random(7);
  for (int i = 0; i < 200; ++i) {
    const MaxMinProblem max_min_problem = random_max_min_problem(random, {});
    MaxMinProblem backwards{.capacity = max_min_problem.capacity};
    for (std::size_t flow = max_min_problem.flows(); flow-- > 0;)
      backwards.add_flow(
          std::vector(max_min_problem.links.begin() + max_min_problem.first[flow],
                      max_min_problem.links.begin() + max_min_problem.first[flow + 1]));
    const std::vector<double> rates = max_min_rates(max_min_problem);
    const std::vector<double> others = max_min_rates(backwards);
    for (std::size_t flow = 0; flow < rates.size(); ++flow)
      ASSERT_THAT(others[rates.size() - 1 - flow], DoubleNear(rates[flow], 1e-9 * rates[flow]));
  }
}

}  // namespace
}  // namespace regatta::fabric
