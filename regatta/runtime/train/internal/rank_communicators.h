// train/internal/rank_communicators.h: the communicators of one rank. What must overlap has its own
// communicator, since the operations of one run in the order of the calls.
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
  // One pair of ranks each, the earlier stage is rank 0 of it; activations and gradients apart.
  std::optional<comm::Communicator> activations_in, activations_out;
  std::optional<comm::Communicator> gradients_in, gradients_out;
};

// Cuts `world` up; collective over its ranks. world: empty for a run of one rank.
Result<RankCommunicators> make_rank_communicators(std::optional<comm::Communicator> world,
                                                  Rank rank, const workload::Strategy& strategy,
                                                  const workload::ModelShape& model);

}  // namespace regatta::train
