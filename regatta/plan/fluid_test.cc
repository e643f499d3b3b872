#include "regatta/plan/fluid.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace regatta::plan {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(FluidNetwork, GivesALoneTransferTheWholeLink) {
  const Transfer one{{{0, 1.0}}, 100};
  FluidNetwork network({10});
  network.start(&one, 7);
  EXPECT_DOUBLE_EQ(network.next_end(), 10);
  EXPECT_THAT(network.advance(4), IsEmpty());
  EXPECT_DOUBLE_EQ(network.next_end(), 6);
  EXPECT_THAT(network.advance(6), ElementsAre(7));
  EXPECT_TRUE(network.idle());
}

TEST(FluidNetwork, SharesALinkAndGivesBackWhatIsLeft) {
  const Transfer small{{{0, 1.0}}, 50};
  const Transfer large{{{0, 1.0}}, 100};
  FluidNetwork network({10});
  network.start(&large, 1);
  network.start(&small, 2);
  EXPECT_DOUBLE_EQ(network.next_end(), 10);  // 5 each
  EXPECT_THAT(network.advance(10), ElementsAre(2));
  EXPECT_DOUBLE_EQ(network.next_end(), 5);  // the rest at 10
  EXPECT_THAT(network.advance(5), ElementsAre(1));
}

TEST(FluidNetwork, GivesATransferBoundElsewhereNoMoreThanItCanUse) {
  const Transfer bound{{{0, 1.0}, {1, 1.0}}, 2};  // resource 1 allows it 2
  const Transfer free{{{0, 1.0}}, 8};
  FluidNetwork network({10, 2});
  network.start(&bound, 1);
  network.start(&free, 2);
  EXPECT_DOUBLE_EQ(network.next_end(), 1);  // 2 and 8 per second
  EXPECT_THAT(network.advance(1), ElementsAre(1, 2));
}

TEST(FluidNetwork, CountsEveryFlowOfATransferThatCrossesTheLink) {
  const Transfer two_flows{{{0, 2.0}}, 30};
  const Transfer one_flow{{{0, 1.0}}, 30};
  FluidNetwork network({9});
  network.start(&two_flows, 1);
  network.start(&one_flow, 2);
  EXPECT_DOUBLE_EQ(network.next_end(), 10);  // 3 per flow
  EXPECT_THAT(network.advance(10), ElementsAre(1, 2));
}

TEST(FluidNetwork, EndsWhatCarriesNothingAtOnce) {
  const Transfer nothing{{}, 100};
  FluidNetwork network({1});
  network.start(&nothing, 3);
  EXPECT_EQ(network.next_end(), 0);
  EXPECT_THAT(network.advance(0), ElementsAre(3));
}

// Random transfers on random links: no link carries more than it can, and no transfer could have
// ended before its lone time.
TEST(FluidNetwork, NeverBeatsTheLinks) {
  for (unsigned seed = 1; seed <= 50; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    std::uniform_real_distribution<double> rate(1, 10);
    std::uniform_real_distribution<double> size(1, 100);
    std::bernoulli_distribution crosses(0.4);
    std::vector<double> capacities(6);
    std::generate(capacities.begin(), capacities.end(), [&] { return rate(random); });
    std::vector<Transfer> transfers(8);
    std::vector<double> carried(6, 0);
    for (Transfer& transfer : transfers) {
      transfer.bytes_per_flow = size(random);
      for (int i = 0; i < 6; ++i) {
        if (!crosses(random)) continue;
        transfer.loads.push_back({i, rate(random)});
        carried[static_cast<std::size_t>(i)] +=
            transfer.loads.back().weight * transfer.bytes_per_flow;
      }
    }
    FluidNetwork network(capacities);
    for (int i = 0; i < 8; ++i)
      network.start(&transfers[static_cast<std::size_t>(i)], i);
    double now = 0;
    while (!network.idle()) {
      const double step = network.next_end();
      ASSERT_TRUE(std::isfinite(step));
      now += step;
      for (const int tag : network.advance(step)) {
        const Transfer& transfer = transfers[static_cast<std::size_t>(tag)];
        EXPECT_GE(now, lone_time(transfer, capacities) * (1 - 1e-3));
      }
    }
    for (std::size_t i = 0; i < 6; ++i)
      EXPECT_GE(now, carried[i] / capacities[i] * (1 - 1e-3));
  }
}

}  // namespace
}  // namespace regatta::plan
