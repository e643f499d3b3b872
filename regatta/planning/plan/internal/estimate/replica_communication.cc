#include "regatta/planning/plan/internal/estimate/replica_communication.h"

#include <algorithm>

namespace regatta::plan {

using cost::Collective;

GradientSum gradient_sum(const cost::StackTraits& traits, const workload::Strategy& strategy,
                         workload::Precision precision, double micro_batches) {
  GradientSum sum{.bytes = traits.gradient_bytes};
  // Frameworks add gradients of bf16, which has 8 bits of mantissa, in fp32 (Megatron-LM's
  // arguments.py: bf16 implies accumulate-allreduce-grads-in-fp32).
  if (precision == workload::Precision::kBf16) sum.bytes = std::max(4.0, sum.bytes);
  if (strategy.zero >= 2 || (strategy.zero == 1 && traits.scatters_gradients))
    sum.kind = Collective::kReduceScatter;
  // ZeRO-2 has no whole gradient to add to: it reduces after every micro-batch.
  if (strategy.zero == 2 && cost::shares_gradients(strategy)) sum.rounds = micro_batches;
  return sum;
}

HidingPasses hiding_passes(const workload::Strategy& strategy, const GradientSum& sum,
                           double micro_batches) {
  if (strategy.zero == 3) return {.forwards = micro_batches, .backwards = micro_batches};
  return {.forwards = strategy.zero > 0 ? 1.0 : 0.0, .backwards = sum.rounds};
}

ReplicaCommunication::ReplicaCommunication(const EstimateInput& input, const MachineModel& machine,
                                           const cost::RankParameters& held, int micro_batches)
    : strategy_(input.strategy),
      traits_(input.stack.traits),
      network_(machine.network),
      held_(held),
      weight_bytes_(bytes_per_element(input.precision)),
      copies_(static_cast<double>(strategy_.dp) * strategy_.cp),
      expert_copies_(cost::expert_copies(strategy_)),
      // Where that fills a server, each of its devices has a ring of its own through the NICs.
      expert_stride_(workload::expert_fold(strategy_).edp_stride()),
      sum_(gradient_sum(traits_, strategy_, input.precision, micro_batches)),
      passes_(hiding_passes(strategy_, sum_, micro_batches)) {}

double ReplicaCommunication::overlap() const {
  return strategy_.overlap ? traits_.dp_overlap : 0;
}

cost::RankGroup ReplicaCommunication::group(double ranks, int stride) const {
  return {.ranks = static_cast<int>(ranks),
          .inside = ranks_inside(network_, static_cast<int>(ranks), stride),
          .rings = std::min(stride, network_.devices),
          .extent = strategy_.world_size() / strategy_.pp};
}

// One collective of plain parameters over `plain` ranks and of those of experts over `experts`.
Seconds ReplicaCommunication::exchange(const cost::RankParameters& some, const cost::Shards& ranks,
                                       Collective kind, double bytes) const {
  const auto time = [&](double parameters, double count, int stride) {
    if (parameters == 0) return Seconds{};
    cost::RankGroup members = group(count, stride);
    if (traits_.gathers_flat && strategy_.zero == 3) {
      members.inside = 1;
      members.rings = network_.devices;
    }
    return collective_time(network_, members, kind, parameters * bytes);
  };
  return time(some.plain, ranks.plain, strategy_.tp) +
         time(some.experts, ranks.experts, expert_stride_);
}

// Every block's weights are gathered before its forward and again before its backward, and its
// gradients scattered after: beside the blocks around it. Groups that hold the same shards sum them
// once a step.
Seconds ReplicaCommunication::shared_weights(Seconds slot, Seconds forward) const {
  const cost::Shards shards = cost::shards_of(strategy_);
  const Seconds gather = exchange(held_, shards, Collective::kAllGather, weight_bytes_);
  const Seconds scatter =
      exchange(held_.trained(), shards, Collective::kReduceScatter, weight_bytes_);
  const Seconds backward = slot - forward;
  const Seconds sharing =
      exposed(gather, forward, overlap()) * passes_.forwards +
      exposed(gather * (kGathersOfSharedWeights - 1) + scatter, backward, overlap()) *
          passes_.backwards;
  if (shards.plain >= copies_) return sharing;
  const cost::RankParameters trained = held_.trained();
  const cost::RankParameters shard{.plain = trained.plain / shards.plain,
                                   .experts = trained.experts / shards.experts};
  cost::RankGroup across = group(copies_ / shards.plain, strategy_.tp);
  across.inside = 1;
  across.rings = network_.devices;
  return sharing +
         collective_time(network_, across, Collective::kAllReduce, shard.total() * sum_.bytes);
}

Seconds ReplicaCommunication::exposed_beside(Seconds slot, Seconds forward) const {
  if (copies_ == 1 && expert_copies_ <= 1) return {};
  if (strategy_.zero == 3) return shared_weights(slot, forward);
  const cost::Shards all{.plain = copies_, .experts = expert_copies_};
  const cost::RankParameters trained = held_.trained();
  const Seconds sums = exchange(trained, all, sum_.kind, sum_.bytes);
  Seconds gathers;
  if (strategy_.zero > 0) gathers = exchange(trained, all, Collective::kAllGather, weight_bytes_);
  return exposed(sums, slot - forward, overlap()) * passes_.backwards +
         exposed(gathers, forward, overlap()) * passes_.forwards;
}

}  // namespace regatta::plan
