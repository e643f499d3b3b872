// plan/internal/estimate/replica_communication.h: what replicas of a model exchange in a step on
// equal servers, in closed form. ZeRO: Rajbhandari et al., SC'20.
#pragma once

#include "regatta/base/core/units.h"
#include "regatta/model/cost/memory.h"
#include "regatta/planning/plan/estimate.h"

namespace regatta::plan {

// How replicas that do not share weights sum their gradients.
struct GradientSum {
  cost::Collective kind = cost::Collective::kAllReduce;
  double rounds = 1;  // a step
  double bytes = 2;   // per parameter
};
GradientSum gradient_sum(const cost::StackTraits& traits, const workload::Strategy& strategy,
                         workload::Precision precision, double micro_batches);

// The passes of micro-batches that hide exchanges of a step: gathers of weights lie beside forward
// passes, sums of gradients, and with zero 3 the second gathers, beside backward passes. The
// estimate of a step and the placement of its ranks both take them from here.
struct HidingPasses {
  double forwards = 0;
  double backwards = 1;
};
HidingPasses hiding_passes(const workload::Strategy& strategy, const GradientSum& sum,
                           double micro_batches);
// With zero 3, for every micro-batch; a gather and a scatter have the bytes of the weights.
inline constexpr double kGathersOfSharedWeights = 2;

// The exchange between replicas in a step. Input and machine outlive it.
class ReplicaCommunication {
 public:
  // `held`: parameters of a rank of the heaviest stage, before replicas share them.
  ReplicaCommunication(const EstimateInput& input, const MachineModel& machine,
                       const cost::RankParameters& held, int micro_batches);

  // Sums of gradients and gathers of weights in a step, less what computation hides of them: a
  // micro-batch takes `slot`, of it `forward` the forward. 0 for a single replica.
  Seconds exposed_beside(Seconds slot, Seconds forward) const;

 private:
  // `ranks` of them, `stride` apart.
  cost::RankGroup group(double ranks, int stride) const;
  Seconds exchange(const cost::RankParameters& some, const cost::Shards& ranks,
                   cost::Collective kind, double bytes) const;
  Seconds shared_weights(Seconds slot, Seconds forward) const;
  double overlap() const;

  const workload::Strategy& strategy_;
  const cost::StackTraits& traits_;
  const cost::ServerNetwork& network_;
  cost::RankParameters held_;
  double weight_bytes_;
  double copies_;         // of plain parameters,
  double expert_copies_;  // of those of experts,
  int expert_stride_;     // so far apart
  GradientSum sum_;
  HidingPasses passes_;
};

}  // namespace regatta::plan
