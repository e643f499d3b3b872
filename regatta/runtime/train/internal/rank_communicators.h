// train/internal/rank_communicators.h: the communicators of one rank. Operations that must overlap
// have communicators of their own, since those of one communicator run in the order of the calls.
#pragma once

#include <optional>

#include "regatta/model/workload/model.h"
#include "regatta/model/workload/strategy.h"
#include "regatta/runtime/comm/communicator.h"

namespace regatta::train {

// Empty where the rank has no partner.
struct RankCommunicators {
  workload::RankCoordinates at;
  std::optional<comm::Communicator> world;  // gradient norm, loss, checkpoints
  std::optional<comm::Communicator> tp;
  std::optional<comm::Communicator> dp;
  std::optional<comm::Communicator> tie;  // the first and the last stage, for tied embeddings
  // A pair of ranks each, with the earlier stage as rank 0; activations and gradients are separate.
  std::optional<comm::Communicator> activations_in, activations_out;
  std::optional<comm::Communicator> gradients_in, gradients_out;
};

// Splits `world`; collective over its ranks. world: empty for a run of one rank.
Result<RankCommunicators> make_rank_communicators(std::optional<comm::Communicator> world,
                                                  Rank rank, const workload::Strategy& strategy,
                                                  const workload::ModelShape& model);

}  // namespace regatta::train
