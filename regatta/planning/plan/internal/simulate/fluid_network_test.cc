#include "regatta/planning/plan/internal/simulate/fluid_network.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <random>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "regatta/base/core/ids.h"

namespace regatta::plan {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(FluidNetwork, GivesALoneTransferTheWholeLink) {
  const FluidTransfer one{{{0, 1.0}}, 100};
  FluidNetwork network({10});
  network.start(&one, 7);
  EXPECT_DOUBLE_EQ(network.next_end(), 10);
  EXPECT_THAT(network.advance(4), IsEmpty());
  EXPECT_DOUBLE_EQ(network.next_end(), 6);
  EXPECT_THAT(network.advance(6), ElementsAre(7));
  EXPECT_TRUE(network.idle());
}

TEST(FluidNetwork, SharesALinkAndGivesBackWhatIsLeft) {
  const FluidTransfer small{{{0, 1.0}}, 50};
  const FluidTransfer large{{{0, 1.0}}, 100};
  FluidNetwork network({10});
  network.start(&large, 1);
  network.start(&small, 2);
  EXPECT_DOUBLE_EQ(network.next_end(), 10);  // 5 each
  EXPECT_THAT(network.advance(10), ElementsAre(2));
  EXPECT_DOUBLE_EQ(network.next_end(), 5);  // the rest at 10
  EXPECT_THAT(network.advance(5), ElementsAre(1));
}

TEST(FluidNetwork, GivesATransferBoundElsewhereNoMoreThanItCanUse) {
  const FluidTransfer bound{{{0, 1.0}, {1, 1.0}}, 2};  // resource 1 allows it 2
  const FluidTransfer free{{{0, 1.0}}, 8};
  FluidNetwork network({10, 2});
  network.start(&bound, 1);
  network.start(&free, 2);
  EXPECT_DOUBLE_EQ(network.next_end(), 1);  // 2 and 8 per second
  EXPECT_THAT(network.advance(1), ElementsAre(1, 2));
}

TEST(FluidNetwork, CountsEveryFlowOfATransferThatCrossesTheLink) {
  const FluidTransfer two_flows{{{0, 2.0}}, 30};
  const FluidTransfer one_flow{{{0, 1.0}}, 30};
  FluidNetwork network({9});
  network.start(&two_flows, 1);
  network.start(&one_flow, 2);
  EXPECT_DOUBLE_EQ(network.next_end(), 10);  // 3 per flow
  EXPECT_THAT(network.advance(10), ElementsAre(1, 2));
}

TEST(FluidNetwork, EndsWhatCarriesNothingAtOnce) {
  const FluidTransfer nothing{{}, 100};
  FluidNetwork network({1});
  network.start(&nothing, 3);
  EXPECT_EQ(network.next_end(), 0);
  EXPECT_THAT(network.advance(0), ElementsAre(3));
}

struct Case {
  std::vector<double> capacities;
  std::vector<FluidTransfer> transfers;
};

// Random transfers on random links.
Case random_case(unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<double> rate(1, 10);
  std::uniform_real_distribution<double> size(1, 100);
  std::bernoulli_distribution crosses(0.4);
  Case made{std::vector<double>(6), std::vector<FluidTransfer>(8)};
  std::generate(made.capacities.begin(), made.capacities.end(), [&] { return rate(random); });
  for (FluidTransfer& transfer : made.transfers) {
    transfer.bytes_per_flow = size(random);
    for (int i = 0; i < 6; ++i) {
      if (crosses(random)) transfer.loads.push_back({i, rate(random)});
    }
  }
  return made;
}

double weight_on(const FluidTransfer& transfer, int resource) {
  for (const ResourceLoad& load : transfer.loads) {
    if (load.resource == resource) return load.weight;
  }
  return 0;
}

// Bytes per second per flow while all run: that of each is seen where it alone is about to end.
std::vector<double> rates_of(const Case& made) {
  std::vector<double> rates;
  for (std::size_t i = 0; i < made.transfers.size(); ++i) {
    std::vector<FluidTransfer> transfers = made.transfers;
    FluidNetwork network(made.capacities);
    for (std::size_t j = 0; j < transfers.size(); ++j) {
      transfers[j].bytes_per_flow = i == j ? 1 : 1e12;
      if (!transfers[j].loads.empty()) network.start(&transfers[j], static_cast<int>(j));
    }
    rates.push_back(transfers[i].loads.empty() ? 0 : 1 / network.next_end());
  }
  return rates;
}

// Max-min fairness (Bertsekas and Gallager, 6.5.2): no link carries more than its capacity, and
// each transfer crosses a full link on which no other is faster, so that it could only grow at the
// cost of one that has no more.
TEST(FluidNetwork, SharesMaxMinFairly) {
  for (unsigned seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE(seed);
    const Case made = random_case(seed);
    const std::vector<double> rates = rates_of(made);
    std::vector<double> used(made.capacities.size(), 0);
    std::vector<double> fastest(made.capacities.size(), 0);
    for (std::size_t i = 0; i < rates.size(); ++i) {
      for (const ResourceLoad& load : made.transfers[i].loads) {
        const auto resource = static_cast<std::size_t>(load.resource);
        used[resource] += load.weight * rates[i];
        fastest[resource] = std::max(fastest[resource], rates[i]);
      }
    }
    for (std::size_t r = 0; r < used.size(); ++r)
      EXPECT_LE(used[r], made.capacities[r] * (1 + 1e-9));
    for (std::size_t i = 0; i < rates.size(); ++i) {
      const auto& loads = made.transfers[i].loads;
      const bool is_held = std::any_of(loads.begin(), loads.end(), [&](const ResourceLoad& load) {
        const auto resource = static_cast<std::size_t>(load.resource);
        return used[resource] >= made.capacities[resource] * (1 - 1e-9) &&
               rates[i] >= fastest[resource] * (1 - 1e-9);
      });
      EXPECT_TRUE(is_held || loads.empty()) << "transfer " << i;
    }
  }
}

// No link carries more than it can over the whole time, and no transfer ends before its lone time.
TEST(FluidNetwork, NeverBeatsTheLinks) {
  for (unsigned seed = 1; seed <= 50; ++seed) {
    SCOPED_TRACE(seed);
    const Case made = random_case(seed);
    FluidNetwork network(made.capacities);
    for (std::size_t i = 0; i < made.transfers.size(); ++i)
      network.start(&made.transfers[i], static_cast<int>(i));
    double now = 0;
    while (!network.idle()) {
      const double step = network.next_end();
      ASSERT_TRUE(std::isfinite(step));
      now += step;
      for (const int tag : network.advance(step)) {
        const FluidTransfer& transfer = at(made.transfers, tag);
        for (const ResourceLoad& load : transfer.loads)
          EXPECT_GE(now, load.weight * transfer.bytes_per_flow /
                             at(made.capacities, load.resource) * (1 - 1e-3));
      }
    }
    for (std::size_t r = 0; r < made.capacities.size(); ++r) {
      double carried = 0;
      for (const FluidTransfer& transfer : made.transfers)
        carried += weight_on(transfer, static_cast<int>(r)) * transfer.bytes_per_flow;
      EXPECT_GE(now, carried / made.capacities[r] * (1 - 1e-3));
    }
  }
}

}  // namespace
}  // namespace regatta::plan
