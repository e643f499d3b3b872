#include "regatta/platform/sched/internal/fair_shares.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <limits>

#include <gtest/gtest.h>

#include "regatta/platform/sched/internal/test_random_quotas.h"

namespace regatta::sched {
namespace {

using packing::RandomSequence;
using Shares = std::array<double, kResources>;
constexpr double kInfinite = std::numeric_limits<double>::infinity();

// Fills a tree in small steps, as fair_shares.h defines it.
class SmallSteps {
 public:
  SmallSteps(const QuotaTree& tree, const std::vector<ResourceAmounts>& demand,
             const ResourceAmounts& capacity, double step)
      : tree_(tree), step_(step), queues_(as_index(tree.size())) {
    for (int queue = 0; queue < tree.size(); ++queue) {
      Queue& filled = at(queues_, queue);
      for (std::size_t r = 0; r < kResources; ++r) {
        const double all = static_cast<double>(capacity.of[r]);
        filled.demand[r] = static_cast<double>(at(demand, queue).of[r]) / all;
        filled.guaranteed[r] = static_cast<double>(tree.queue(queue).guaranteed.of[r]) / all;
        filled.limit[r] = tree.queue(queue).limit[r]
                              ? static_cast<double>(*tree.queue(queue).limit[r]) / all
                              : kInfinite;
      }
      filled.dominant = *std::max_element(filled.demand.begin(), filled.demand.end());
    }
    for (std::size_t r = 0; r < kResources; ++r)
      lower_guarantees(r);
    for (int height = 0; height < 8; ++height)
      fill_guarantees(height);
    for (Queue& queue : queues_)
      queue.round = {};
    for (const int leaf : tree.leaves())
      at(queues_, leaf).is_open = at(queues_, leaf).dominant > 0;
    const std::span<const int> top = tree.children(-1);
    while (pour_into_least(top, false)) {
    }
  }

  double dominant_share_of(int queue) const {
    const Shares& all = at(queues_, queue).all;
    return *std::max_element(all.begin(), all.end());
  }

 private:
  struct Queue {
    Shares demand{};
    Shares guaranteed{};
    Shares limit{};
    Shares all{};
    Shares round{};
    double dominant = 0;
    double part = 0;
    bool is_open = false;
  };

  void lower_guarantees(std::size_t r) {
    double part = 1;
    for (; part > 0; part -= 1e-4) {
      double sum = 0;
      for (const int top : tree_.children(-1)) {
        double demand = 0;
        for (int below = top; below < tree_.subtree_end(top); ++below)
          demand += at(queues_, below).demand[r];
        sum += std::min(demand, part * at(queues_, top).guaranteed[r]);
      }
      if (sum <= 1) break;
    }
    for (Queue& queue : queues_)
      queue.guaranteed[r] *= part;
  }

  void fill_guarantees(int height) {
    std::vector<int> roots;
    for (Queue& queue : queues_) {
      queue.round = {};
      queue.is_open = false;
    }
    for (int root = 0; root < tree_.size(); ++root) {
      if (tree_.height(root) != height) continue;
      roots.push_back(root);
      for (int leaf = root; leaf < tree_.subtree_end(root); ++leaf)
        for (std::size_t r = 0; r < kResources; ++r)
          at(queues_, leaf).is_open |=
              at(queues_, root).guaranteed[r] > 0 && at(queues_, leaf).demand[r] > 0;
    }
    while (!roots.empty() && pour_into_least(roots, true)) {
    }
  }

  bool has_open_leaf(int queue) const {
    for (int below = queue; below < tree_.subtree_end(queue); ++below)
      if (at(queues_, below).is_open) return true;
    return false;
  }

  double level(int queue, bool is_guarantee) const {
    const Queue& filled = at(queues_, queue);
    double share = 0;
    for (std::size_t r = 0; r < kResources; ++r) {
      if (!is_guarantee) share = std::max(share, filled.round[r]);
      if (is_guarantee && filled.guaranteed[r] > 0)
        share = std::max(share, filled.round[r] / filled.guaranteed[r]);
    }
    return is_guarantee ? share : share / tree_.queue(queue).weight;
  }

  // How far a step may lift the level.
  double grain(int queue, bool is_guarantee) const {
    double share = is_guarantee ? 0 : step_ / tree_.queue(queue).weight;
    for (std::size_t r = 0; r < kResources; ++r)
      if (is_guarantee && at(queues_, queue).guaranteed[r] > 0)
        share = std::max(share, step_ / at(queues_, queue).guaranteed[r]);
    return share;
  }

  bool rises(int queue, bool is_guarantee, int leaf) const {
    const Queue& filled = at(queues_, queue);
    const Queue& fed = at(queues_, leaf);
    const double before = level(queue, is_guarantee);
    for (std::size_t r = 0; r < kResources; ++r) {
      const double share = filled.round[r] + step_ * fed.demand[r] / fed.dominant;
      const double unit = is_guarantee ? filled.guaranteed[r] : tree_.queue(queue).weight;
      if (unit > 0 && share / unit > before) return true;
    }
    return false;
  }

  struct Choice {
    int queue = -1;  // of those to choose from
    int leaf = -1;   // below it
  };

  // The least; steps do not tell levels apart that they differ by, so that the first of those does
  // that takes something and does not rise.
  Choice choose(std::span<const int> choices, bool is_guarantee) const {
    int least = -1;
    for (const int choice : choices)
      if (has_open_leaf(choice) &&
          (least < 0 || level(choice, is_guarantee) < level(least, is_guarantee)))
        least = choice;
    if (least < 0) return {};
    for (const int choice : choices) {
      if (tree_.is_leaf(choice) || !has_open_leaf(choice)) continue;
      const double apart = level(choice, is_guarantee) - level(least, is_guarantee);
      if (apart > 2 * std::max(grain(choice, is_guarantee), grain(least, is_guarantee))) continue;
      const int leaf = choose(tree_.children(choice), false).leaf;
      if (!rises(choice, is_guarantee, leaf)) return {choice, leaf};
    }
    return {least, tree_.is_leaf(least) ? least : choose(tree_.children(least), false).leaf};
  }

  bool pour_into_least(std::span<const int> roots, bool is_guarantee) {
    const Choice choice = choose(roots, is_guarantee);
    if (choice.leaf < 0) return false;
    if (pour(choice.leaf, is_guarantee ? choice.queue : -1)) return true;
    for (const int root : roots)
      for (int leaf = root; leaf < tree_.subtree_end(root); ++leaf) {
        Queue& blocked = at(queues_, leaf);
        if (blocked.is_open &&
            possible_part(leaf, is_guarantee ? root : -1) * blocked.dominant < 1e-12)
          blocked.is_open = false;
      }
    return true;
  }

  double possible_part(int leaf, int bounded) const {
    const Queue& filled = at(queues_, leaf);
    double part = 1 - filled.part;
    Shares used{};
    for (const int top : tree_.children(-1))
      for (std::size_t r = 0; r < kResources; ++r)
        used[r] += at(queues_, top).all[r];
    for (std::size_t r = 0; r < kResources; ++r) {
      if (filled.demand[r] <= 0) continue;
      part = std::min(part, (1 - used[r]) / filled.demand[r]);
      for (int queue = leaf; queue >= 0; queue = tree_.parent(queue)) {
        const Queue& above = at(queues_, queue);
        part = std::min(part, (above.limit[r] - above.all[r]) / filled.demand[r]);
        if (queue == bounded && above.guaranteed[r] > 0)
          part = std::min(part, (above.guaranteed[r] - above.all[r]) / filled.demand[r]);
      }
    }
    return std::max(part, 0.0);
  }

  // At most one step; false where less is possible: the leaf is full.
  bool pour(int leaf, int bounded) {
    Queue& filled = at(queues_, leaf);
    const double wanted = step_ / filled.dominant;
    const double part = std::min(wanted, possible_part(leaf, bounded));
    filled.is_open = part >= wanted;
    filled.part += part;
    for (int queue = leaf; queue >= 0; queue = tree_.parent(queue)) {
      for (std::size_t r = 0; r < kResources; ++r) {
        at(queues_, queue).all[r] += part * filled.demand[r];
        at(queues_, queue).round[r] += part * filled.demand[r];
      }
    }
    return filled.is_open;
  }

  const QuotaTree& tree_;
  double step_;
  std::vector<Queue> queues_;
};

// Whether the shares of a random tree are within 2 % of the small steps.
bool is_within_of_steps(std::uint64_t seed, double step, double& worst) {
  RandomSequence random(seed);
  const ResourceAmounts capacity = random_capacity(random);
  const QuotaTree tree = random_tree(random, capacity,
                                     {.guaranteed_part = std::array{0.0, 0.6, 1.0, 1.6}[seed % 4],
                                      .limited_queues = std::array{0.0, 0.4}[seed / 4 % 2]});
  const std::vector<ResourceAmounts> demand = random_demand(random, tree, capacity);
  const FairShares shares = fair_shares(tree, demand, capacity);
  const SmallSteps expected(tree, demand, capacity, step);
  bool is_within = true;
  double worst_here = 0;
  for (int queue = 0; queue < tree.size(); ++queue) {
    const double share = expected.dominant_share_of(queue);
    const double error = std::abs(at(shares.dominant, queue) - share);
    is_within &= error <= 0.02 * share + 4 * step;
    if (share > 0.1) worst_here = std::max(worst_here, error / share);
  }
  if (is_within) worst = std::max(worst, worst_here);
  return is_within;
}

TEST(FairShares, AreWithinTwoPercentOfSmallStepsOnAThousandRandomTrees) {
  double worst = 0;
  for (std::uint64_t seed = 0; seed < 1000; ++seed)
    EXPECT_TRUE(is_within_of_steps(seed, 1e-3, worst)) << "seed " << seed;
  std::printf("largest difference of a share above 0.1: %.5f of it\n", worst);
}

// Two children of the top are equally full when a resource is used up, and then take another one
// without rising: the first gets all that is left of it. Steps that only compare levels give it to
// either, by their size.
TEST(FairShares, OfEqualQueuesThatTakeWithoutRisingAreThoseOfTheFirst) {
  double worst = 0;
  for (const double step : {1e-3, 5e-4, 1e-4, 5e-5})
    EXPECT_TRUE(is_within_of_steps(258, step, worst)) << "step " << step;
}

// Each queue has another demand, so that each leaf becomes full at another level.
TEST(FairShares, AreFoundInTimeForManyQueues) {
  for (const int queues : {100, 1000, 5000}) {
    RandomSequence random(7);
    const ResourceAmounts capacity = random_capacity(random);
    const QuotaTree tree = tree_of_many(random, queues);
    const std::vector<ResourceAmounts> demand = random_demand(random, tree, capacity);
    const std::clock_t start = std::clock();
    const FairShares shares = fair_shares(tree, demand, capacity);
    const double time = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
    std::printf("%d queues: %.1f ms of processor time\n", queues, 1000 * time);
    ResourceAmounts used;
    for (const int top : tree.children(-1))
      used += at(shares.deserved, top);
    for (std::size_t r = 0; r < kResources; ++r)
      EXPECT_LE(used.of[r], capacity.of[r]);
  }
}

struct Scene {
  ResourceAmounts capacity;
  QuotaTree tree;
  std::vector<ResourceAmounts> demand;
};

Scene random_scene(std::uint64_t seed, const RandomTreeOptions& options) {
  RandomSequence random(seed);
  Scene scene;
  scene.capacity = random_capacity(random);
  scene.tree = random_tree(random, scene.capacity, options);
  scene.demand = random_demand(random, scene.tree, scene.capacity);
  return scene;
}

bool is_satisfied(const Scene& scene, const FairShares& shares, int leaf) {
  return at(shares.deserved, leaf) == at(scene.demand, leaf);
}

TEST(FairShares, LeaveNothingThatALeafCouldTakeAndKeepLimitsAndCapacity) {
  for (std::uint64_t seed = 0; seed < 1000; ++seed) {
    SCOPED_TRACE(seed);
    const Scene scene =
        random_scene(seed, {.guaranteed_part = seed % 2 == 0 ? 0.8 : 1.5, .limited_queues = 0.5});
    const FairShares shares = fair_shares(scene.tree, scene.demand, scene.capacity);
    ResourceAmounts used;
    for (const int top : scene.tree.children(-1))
      used += at(shares.deserved, top);
    for (std::size_t r = 0; r < kResources; ++r) {
      ASSERT_LE(used.of[r], scene.capacity.of[r]);
      for (int queue = 0; queue < scene.tree.size(); ++queue) {
        const auto limit = scene.tree.queue(queue).limit[r];
        ASSERT_LE(at(shares.deserved, queue).of[r], limit.value_or(scene.capacity.of[r]));
      }
    }
    // Amounts are rounded down for each leaf.
    const long long rounding = static_cast<long long>(scene.tree.leaves().size()) + 1;
    for (const int leaf : scene.tree.leaves()) {
      bool is_blocked = is_satisfied(scene, shares, leaf);
      for (std::size_t r = 0; r < kResources; ++r) {
        if (at(scene.demand, leaf).of[r] == 0) continue;
        is_blocked |= used.of[r] + rounding >= scene.capacity.of[r];
        for (int queue = leaf; queue >= 0; queue = scene.tree.parent(queue)) {
          const auto limit = scene.tree.queue(queue).limit[r];
          is_blocked |= limit && at(shares.deserved, queue).of[r] + rounding >= *limit;
        }
      }
      EXPECT_TRUE(is_blocked) << scene.tree.queue(leaf).name;
    }
  }
}

TEST(FairShares, GiveEachLeafItsGuaranteeOrItsDemandWhereTheClusterHoldsAllGuarantees) {
  for (std::uint64_t seed = 0; seed < 1000; ++seed) {
    Scene scene = random_scene(seed, {.guaranteed_part = 1.0});
    for (ResourceAmounts& demand : scene.demand)  // in the resource that all guarantees name
      for (std::size_t r = 1; r < kResources; ++r)
        demand.of[r] = 0;
    const FairShares shares = fair_shares(scene.tree, scene.demand, scene.capacity);
    for (const int leaf : scene.tree.leaves())
      EXPECT_GE(at(shares.deserved, leaf).of[0],
                std::min(at(scene.demand, leaf).of[0], scene.tree.queue(leaf).guaranteed.of[0]))
          << seed << scene.tree.queue(leaf).name;
  }
}

TEST(FairShares, GiveEachLeafItsDemandOrItsPartOfTheClusterByWeight) {
  for (std::uint64_t seed = 0; seed < 1000; ++seed) {
    const Scene scene = random_scene(seed, {});
    const FairShares shares = fair_shares(scene.tree, scene.demand, scene.capacity);
    for (const int leaf : scene.tree.leaves()) {
      double part = 1;
      for (int queue = leaf; queue >= 0; queue = scene.tree.parent(queue)) {
        double weights = 0;
        for (const int sibling : scene.tree.children(scene.tree.parent(queue)))
          weights += scene.tree.queue(sibling).weight;
        part *= scene.tree.queue(queue).weight / weights;
      }
      const bool is_enough =
          is_satisfied(scene, shares, leaf) || at(shares.dominant, leaf) >= part - 1e-3;
      EXPECT_TRUE(is_enough) << seed << scene.tree.queue(leaf).name;
    }
  }
}

TEST(FairShares, DoNotFallWithTheWeightOfAQueueAmongSiblings) {
  for (std::uint64_t seed = 0; seed < 1000; ++seed) {
    const Scene scene = random_scene(seed, {.depth_max = 1, .guaranteed_part = 0.4});
    const FairShares before = fair_shares(scene.tree, scene.demand, scene.capacity);
    const int heavier = static_cast<int>(seed) % scene.tree.size();
    std::vector<QuotaQueue> queues;
    for (int queue = 0; queue < scene.tree.size(); ++queue)
      queues.push_back(scene.tree.queue(queue));
    at(queues, heavier).weight *= 1.5;
    const FairShares after =
        fair_shares(*QuotaTree::create(std::move(queues)), scene.demand, scene.capacity);
    EXPECT_GE(at(after.dominant, heavier), at(before.dominant, heavier) - 1e-3) << seed;
    EXPECT_EQ(fair_shares(scene.tree, scene.demand, scene.capacity).deserved, before.deserved);
  }
}

TEST(FairShares, GiveTheExampleOfThePaper) {
  // 9 CPUs and 18 GB; tasks of 1 CPU and 4 GB against tasks of 3 CPUs and 1 GB: 3 and 2 tasks.
  std::vector<QuotaQueue> queues(2);
  queues[0].name = "a";
  queues[1].name = "b";
  const FairShares shares =
      fair_shares(*QuotaTree::create(queues), {{{0, 0, 100, 400, 0}}, {{0, 0, 300, 100, 0}}},
                  {{0, 0, 9, 18, 0}});
  EXPECT_EQ(shares.deserved[0], (ResourceAmounts{{0, 0, 3, 12, 0}}));
  EXPECT_EQ(shares.deserved[1], (ResourceAmounts{{0, 0, 6, 2, 0}}));
}

}  // namespace
}  // namespace regatta::sched
