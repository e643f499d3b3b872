#include "regatta/planning/plan/internal/estimate/optimizer_time.h"

#include <algorithm>

namespace regatta::plan {
namespace {

using workload::Offload;

bool offloads_optimizer(const workload::Strategy& strategy) {
  return strategy.offload == Offload::kOptimizer || strategy.offload == Offload::kBoth;
}

bool offloads_activations(const workload::Strategy& strategy) {
  return strategy.offload == Offload::kActivations || strategy.offload == Offload::kBoth;
}

}  // namespace

Seconds optimizer_time(const EstimateInput& input, const MachineModel& machine,
                       const cost::RankParameters& held, int micro_batches) {
  const double own = cost::updated_parameters(input.strategy, held);
  const double kept = cost::shares_gradients(input.strategy) ? own : held.trained().total();
  const double sums = input.stack.traits.accumulated_bytes * kept * micro_batches;
  const Seconds time{sums / machine.engines.scores.memory.value};
  if (offloads_optimizer(input.strategy)) return time;
  return time + gpu_optimizer_time(machine.engines, own);
}

Seconds optimizer_offload_time(const EstimateInput& input, const MachineModel& machine,
                               const cost::RankParameters& held) {
  if (!offloads_optimizer(input.strategy)) return {};
  // Adam reads and writes 28 bytes a parameter; two sockets of 8 channels sustain some 300 GB/s.
  constexpr double kAdamBytes = 28;
  constexpr double kServerMemory = 300e9;
  const double own = cost::updated_parameters(input.strategy, held);
  return Seconds{own * 2 * bytes_per_element(input.precision) / machine.engines.host_link.value} +
         Seconds{own * kAdamBytes * machine.network.devices / machine.network.servers /
                 kServerMemory};
}

Seconds activation_offload_time(const EstimateInput& input, const MachineModel& machine,
                                const OffloadedActivations& activations) {
  if (!offloads_activations(input.strategy)) return {};
  // The link is that of the NIC, too, and copies take memory bandwidth from the kernels.
  constexpr double kHidden = 0.8;
  const Seconds copy{activations.bytes / machine.engines.host_link.value};
  const Seconds beside = std::min(copy, activations.forward) + std::min(copy, activations.backward);
  return copy * 2.0 - beside * kHidden;
}

}  // namespace regatta::plan
