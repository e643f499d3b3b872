#include "regatta/platform/sched/internal/water_filling.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <limits>

#include <gtest/gtest.h>

#include "regatta/platform/sched/internal/test_random_quotas.h"
#include "regatta/platform/sched/internal/test_scanned_water_filling.h"

namespace regatta::sched {
namespace {

using packing::RandomSequence;

struct Pouring {
  QuotaTree tree;
  std::vector<ResourceShares> demand;
  std::vector<ResourceShares> limit;
  std::vector<ResourceShares> guaranteed;
};

ResourceShares shares_of(const ResourceAmounts& amounts, const ResourceAmounts& capacity) {
  ResourceShares shares{};
  for (std::size_t r = 0; r < kResources; ++r)
    shares[r] = static_cast<double>(amounts.of[r]) / static_cast<double>(capacity.of[r]);
  return shares;
}

Pouring pouring_of(QuotaTree tree, const std::vector<ResourceAmounts>& demand,
                   const ResourceAmounts& capacity) {
  Pouring pouring{.tree = std::move(tree), .demand = {}, .limit = {}, .guaranteed = {}};
  for (int queue = 0; queue < pouring.tree.size(); ++queue) {
    pouring.demand.push_back(shares_of(at(demand, queue), capacity));
    pouring.guaranteed.push_back(shares_of(pouring.tree.queue(queue).guaranteed, capacity));
    ResourceShares& limit = pouring.limit.emplace_back();
    limit.fill(std::numeric_limits<double>::infinity());
    for (std::size_t r = 0; r < kResources; ++r)
      if (const auto amount = pouring.tree.queue(queue).limit[r])
        limit[r] = static_cast<double>(*amount) / static_cast<double>(capacity.of[r]);
  }
  return pouring;
}

// By leaf; those of the guarantees first, then of all.
template <typename Filling>
std::vector<double> parts(const Pouring& pouring) {
  Filling filling(pouring.tree, pouring.demand, pouring.limit);
  std::vector<double> parts;
  const auto add_parts = [&] {
    for (const int leaf : pouring.tree.leaves())
      parts.push_back(filling.part(leaf));
  };
  int height_max = 0;
  for (int queue = 0; queue < pouring.tree.size(); ++queue)
    height_max = std::max(height_max, pouring.tree.height(queue));
  for (int height = 0; height <= height_max; ++height) {
    filling.fill_up_to(pouring.guaranteed, height);
    add_parts();
  }
  filling.fill();
  add_parts();
  return parts;
}

double largest_difference(const Pouring& pouring) {
  const std::vector<double> found = parts<WaterFilling>(pouring);
  const std::vector<double> expected = parts<ScannedWaterFilling>(pouring);
  double largest = 0;
  for (std::size_t i = 0; i < found.size(); ++i)
    largest = std::max(largest, std::abs(found[i] - expected[i]));
  return largest;
}

TEST(WaterFilling, PoursAsAScanOfAllQueuesDoes) {
  double largest = 0;
  for (std::uint64_t seed = 0; seed < 1000; ++seed) {
    RandomSequence random(seed);
    const ResourceAmounts capacity = random_capacity(random);
    QuotaTree tree = random_tree(random, capacity,
                                 {.depth_max = 1 + static_cast<int>(seed % 5),
                                  .guaranteed_part = std::array{0.0, 0.6, 1.0, 1.6}[seed % 4],
                                  .limited_queues = std::array{0.0, 0.4}[seed / 4 % 2]});
    const auto demand = random_demand(random, tree, capacity);
    const double difference = largest_difference(pouring_of(std::move(tree), demand, capacity));
    EXPECT_LT(difference, 1e-8) << "seed " << seed;
    largest = std::max(largest, difference);
  }
  std::printf("largest difference of a part of a demand: %.2g\n", largest);
}

// Each queue has another demand, so that each leaf becomes full at another level.
Pouring pouring_of_many(int queues) {
  RandomSequence random(7);
  const ResourceAmounts capacity = random_capacity(random);
  QuotaTree tree = tree_of_many(random, queues);
  const auto demand = random_demand(random, tree, capacity);
  return pouring_of(std::move(tree), demand, capacity);
}

TEST(WaterFilling, PoursIntoManyQueuesAsAScanOfThemDoes) {
  EXPECT_LT(largest_difference(pouring_of_many(1000)), 1e-8);
  for (const int queues : {5000, 10'000}) {
    const Pouring pouring = pouring_of_many(queues);
    const std::clock_t start = std::clock();
    parts<WaterFilling>(pouring);
    const double time = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
    std::printf("%d queues: %.1f ms of processor time\n", queues, 1000 * time);
  }
}

}  // namespace
}  // namespace regatta::sched
