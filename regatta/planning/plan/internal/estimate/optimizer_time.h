// plan/internal/estimate/optimizer_time.h: the optimizer of a step, and the transfers of optimizer
// state and activations that are offloaded to the server's memory, in closed form.
#pragma once

#include "regatta/base/core/units.h"
#include "regatta/model/cost/memory.h"
#include "regatta/planning/plan/estimate.h"

namespace regatta::plan {

// The sums of gradients of micro-batches, and the update of the device's own parameters. `held`:
// parameters of a rank of the heaviest stage, before replicas share them.
Seconds optimizer_time(const EstimateInput& input, const MachineModel& machine,
                       const cost::RankParameters& held, int micro_batches);

// Gradients go to the processors, which update, and weights come back. 0 without that offload.
Seconds optimizer_offload_time(const EstimateInput& input, const MachineModel& machine,
                               const cost::RankParameters& held);

// Activations that a micro-batch offloads beside its computation, and the times of the transfers.
struct OffloadedActivations {
  double bytes = 0;
  Seconds forward;
  Seconds backward;
};
// For one micro-batch: activations go out beside the forward and come back beside the backward. 0
// without that offload.
Seconds activation_offload_time(const EstimateInput& input, const MachineModel& machine,
                                const OffloadedActivations& activations);

}  // namespace regatta::plan
