// train/groups.h: the communicators of one rank. What must overlap has its own communicator, since
// the operations of one run in the order of the calls.
#pragma once

#include <optional>

#include "regatta/coll/communicator.h"
#include "regatta/workload/model.h"
#include "regatta/workload/strategy.h"

namespace regatta::train {

// Empty where the rank has no partner.
struct Groups {
  workload::RankCoordinates at;
  std::optional<coll::Communicator> world;  // gradient norm, loss, checkpoints
  std::optional<coll::Communicator> tp;
  std::optional<coll::Communicator> dp;
  std::optional<coll::Communicator> tie;  // the first and the last stage, for tied embeddings
  // One pair of ranks each, the earlier stage is rank 0 of it; activations and gradients apart.
  std::optional<coll::Communicator> activations_in, activations_out;
  std::optional<coll::Communicator> gradients_in, gradients_out;
};

// Cuts `world` up; collective over its ranks. world: empty for a run of one rank.
Result<Groups> make_groups(std::optional<coll::Communicator> world, Rank rank,
                           const workload::Strategy& strategy, const workload::ModelShape& model);

}  // namespace regatta::train
