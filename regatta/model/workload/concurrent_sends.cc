#include <algorithm>
#include <functional>
#include <utility>

#include "regatta/model/workload/strategy.h"

namespace regatta::workload {
namespace {

using Members = std::function<std::vector<Rank>(const Strategy&, Rank)>;

// The rings of all groups, each once: by its first member.
ConcurrentSends rings(std::string name, const Strategy& strategy, const Members& members) {
  ConcurrentSends set{.name = std::move(name), .sends = {}};
  for (int rank = 0; rank < strategy.world_size(); ++rank) {
    const std::vector<Rank> group = members(strategy, Rank{rank});
    if (group.size() < 2 || group.front() != Rank{rank}) continue;
    for (std::size_t i = 0; i < group.size(); ++i)
      set.sends.push_back({group[i], group[(i + 1) % group.size()]});
  }
  return set;
}

// Activations in one direction, gradients in the other.
ConcurrentSends pipelines(const ModelShape& model, const Strategy& strategy) {
  ConcurrentSends set{.name = "pipeline neighbours", .sends = {}};
  const auto exchange = [&](Rank one, Rank other) {
    set.sends.push_back({one, other});
    set.sends.push_back({other, one});
  };
  for (int rank = 0; rank < strategy.world_size(); ++rank) {
    const std::vector<Rank> stages = pp_group(strategy, Rank{rank});
    if (stages.size() < 2 || stages.front() != Rank{rank}) continue;
    for (std::size_t i = 0; i + 1 < stages.size(); ++i)
      exchange(stages[i], stages[i + 1]);
    if (model.tied_embeddings && stages.size() > 2) exchange(stages.front(), stages.back());
  }
  return set;
}

}  // namespace

std::vector<ConcurrentSends> concurrent_sends(const ModelShape& model, const Strategy& strategy) {
  std::vector<ConcurrentSends> sets;
  sets.push_back(rings("data-parallel rings", strategy, dp_group));
  sets.push_back(pipelines(model, strategy));
  sets.push_back(rings("tensor-parallel rings", strategy, tp_group));
  std::erase_if(sets, [](const ConcurrentSends& set) { return set.sends.empty(); });
  return sets;
}

}  // namespace regatta::workload
