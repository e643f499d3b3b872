#include "regatta/runtime/train/internal/rank_communicators.h"

#include <utility>

namespace regatta::train {
namespace {

using Slot = std::optional<comm::Communicator>;

// Collective: every rank of `world` calls it, those without a part with colour -1.
Status split_into(Slot& slot, comm::Communicator& world, int color) {
  REGATTA_TRY(part, world.split(color));
  if (color >= 0) slot = std::move(part);
  return {};
}

// Boundary b lies between the stages b and b + 1. A rank touches two, so even and odd ones are
// made one after the other.
Status make_pairs(RankCommunicators& groups, const workload::Strategy& strategy) {
  const int parities = strategy.pp > 2 ? 2 : 1;
  const auto& at = groups.at;
  for (int parity = 0; parity < parities; ++parity) {
    const bool lower = at.pp % 2 == parity && at.pp < strategy.pp - 1;
    const bool upper = at.pp > 0 && (at.pp - 1) % 2 == parity;
    const int boundary = lower ? at.pp : at.pp - 1;
    const int pair = (boundary * strategy.dp + at.dp) * strategy.tp + at.tp;
    const int color = lower || upper ? pair : -1;
    REGATTA_TRY_DO(
        split_into(lower ? groups.activations_out : groups.activations_in, *groups.world, color));
    REGATTA_TRY_DO(
        split_into(lower ? groups.gradients_in : groups.gradients_out, *groups.world, color));
  }
  return {};
}

}  // namespace

Result<RankCommunicators> make_rank_communicators(std::optional<comm::Communicator> world,
                                                  Rank rank, const workload::Strategy& strategy,
                                                  const workload::ModelShape& model) {
  RankCommunicators groups;
  groups.at = workload::coordinates_of(strategy, rank);
  groups.world = std::move(world);
  if (strategy.world_size() == 1) return groups;
  const auto& at = groups.at;
  if (strategy.tp > 1)
    REGATTA_TRY_DO(split_into(groups.tp, *groups.world, at.pp * strategy.dp + at.dp));
  if (strategy.dp > 1)
    REGATTA_TRY_DO(split_into(groups.dp, *groups.world, at.pp * strategy.tp + at.tp));
  if (strategy.pp > 1) {
    REGATTA_TRY_DO(make_pairs(groups, strategy));
    const bool at_end = at.pp == 0 || at.pp == strategy.pp - 1;
    const int color = at_end ? at.dp * strategy.tp + at.tp : -1;
    if (model.tied_embeddings) REGATTA_TRY_DO(split_into(groups.tie, *groups.world, color));
  }
  return groups;
}

}  // namespace regatta::train
