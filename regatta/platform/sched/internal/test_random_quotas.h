// sched/internal/test_random_quotas.h: random trees of quotas and demands for tests.
#pragma once

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "regatta/base/core/ids.h"
#include "regatta/platform/packing/random_sequence.h"
#include "regatta/platform/sched/quota_tree.h"

namespace regatta::sched {

struct RandomTreeOptions {
  int depth_max = 3;
  double guaranteed_part = 0;     // of the capacity, about so much in total
  double limited_queues = 0;      // part of the queues that have a limit
  bool has_device_types = false;  // leaves are guaranteed parts of their devices by type: a, b
};

inline ResourceAmounts random_capacity(packing::RandomSequence& random) {
  ResourceAmounts capacity;
  for (long long& amount : capacity.of)
    amount = 10'000 + static_cast<long long>(random.below(1'000'000));
  return capacity;
}

inline void guarantee_random_types(packing::RandomSequence& random, QuotaQueue& queue) {
  for (const char* type : {"a", "b"})
    if (random.below(2) > 0)
      queue.device_types.push_back(
          {.type = type,
           .guaranteed = static_cast<long long>(
               random.uniform() / 2 * static_cast<double>(queue.guaranteed[Resource::kCompute]))});
}

// Adds queues below `parent` ("": the top), and guarantees them `guaranteed` of the capacity at
// most.
inline void add_random_queues(packing::RandomSequence& random, const ResourceAmounts& capacity,
                              const RandomTreeOptions& options, const std::string& parent,
                              double guaranteed, int depth, std::vector<QuotaQueue>& queues) {
  const std::size_t count = (depth == 1 ? 2 : 1) + random.below(4);
  for (std::size_t i = 0; i < count; ++i) {
    QuotaQueue queue;
    queue.name = parent + static_cast<char>('a' + i);
    queue.parent = parent;
    queue.weight = 0.5 + 3.5 * random.uniform();
    const double share = guaranteed / static_cast<double>(count) * (0.5 + 0.5 * random.uniform());
    const bool is_guaranteed = guaranteed > 0 && random.below(4) > 0;
    for (std::size_t r = 0; r < queue.guaranteed.of.size(); ++r) {
      const double available = static_cast<double>(capacity.of[r]);
      if (is_guaranteed && (r == 0 || random.below(2) > 0))
        queue.guaranteed.of[r] = static_cast<long long>(share * available);
      if (random.uniform() < options.limited_queues && random.below(2) > 0) {
        queue.limit[r] = queue.guaranteed.of[r] + static_cast<long long>(share * available) +
                         static_cast<long long>(random.uniform() * available / 2);
      }
    }
    const std::string name = queue.name;
    const std::size_t index = queues.size();
    queues.push_back(std::move(queue));
    if (depth < options.depth_max && random.below(2) > 0)
      add_random_queues(random, capacity, options, name, is_guaranteed ? share : 0, depth + 1,
                        queues);
    else if (options.has_device_types)
      guarantee_random_types(random, queues[index]);
  }
}

// A parent may say nothing of a resource and have a limit in it: such trees are drawn again.
inline QuotaTree random_tree(packing::RandomSequence& random, const ResourceAmounts& capacity,
                             const RandomTreeOptions& options) {
  while (true) {
    std::vector<QuotaQueue> queues;
    add_random_queues(random, capacity, options, "", options.guaranteed_part, 1, queues);
    auto tree = QuotaTree::create(std::move(queues));
    if (tree) return std::move(*tree);
  }
}

// By queue; some leaves want nothing, and some more than the cluster has.
inline std::vector<ResourceAmounts> random_demand(packing::RandomSequence& random,
                                                  const QuotaTree& tree,
                                                  const ResourceAmounts& capacity) {
  std::vector<ResourceAmounts> demand(as_index(tree.size()));
  for (const int leaf : tree.leaves()) {
    if (random.below(10) == 0) continue;
    const double size = 1.5 * std::pow(random.uniform(), 2);
    for (std::size_t r = 0; r < capacity.of.size(); ++r) {
      if (r > 0 && random.below(3) == 0) continue;
      if (r == 0 && random.below(6) == 0) continue;
      at(demand, leaf).of[r] =
          static_cast<long long>(size * random.uniform() * static_cast<double>(capacity.of[r]));
    }
  }
  return demand;
}

// `queues` queues of two levels with weights, nine leaves below each of the first level.
inline QuotaTree tree_of_many(packing::RandomSequence& random, int queues) {
  std::vector<QuotaQueue> all;
  for (int i = 0; i < queues; ++i) {
    QuotaQueue queue{.name = "q" + std::to_string(i)};
    if (i % 10 > 0) queue.parent = "q" + std::to_string(i / 10 * 10);
    queue.weight = 0.5 + random.uniform();
    all.push_back(queue);
  }
  return *QuotaTree::create(std::move(all));
}

}  // namespace regatta::sched
