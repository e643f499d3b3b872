// The work of one rank for a micro-batch: its blocks and the ends of the model.
#include <algorithm>
#include <array>

#include "regatta/base/core/ids.h"
#include "regatta/planning/plan/estimate.h"

namespace regatta::plan {
namespace {

using workload::BlockKind;
using workload::ContextParallelism;
using workload::Mixer;
using workload::Recompute;

// The host prepares backward kernels faster than forward ones: autograd runs them from C++.
constexpr double kBackwardLaunch = 0.6;

class Work {
 public:
  Work(const EstimateInput& input, const MachineModel& machine)
      : input_(input),
        strategy_(input.strategy),
        traits_(input.stack.traits),
        machine_(machine),
        work_(cost::rank_work(input.model, input.strategy)),
        element_(bytes_per_element(input.precision)) {}

  MicroBatchWork micro_batch() const {
    MicroBatchWork all;
    const workload::BlockCounts counts = all_blocks(input_.model);
    std::array<BackwardPace, workload::kBlockKinds> paces;
    for (int kind = 0; kind < workload::kBlockKinds; ++kind)
      if (counts[kind] > 0)
        at(all.blocks, kind) = block(block_kind(input_.model, kind), at(paces, kind));
    add_backward_idle(all, counts, paces);
    const cost::ComputeTime ends =
        gpu_embedding_and_head_time(machine_.engines, input_.stack, work_);
    all.embedding_and_head.matmul = ends.matmul;
    all.embedding_and_head.passes = ends.passes;
    all.logits = gpu_logits_memory(work_);
    const bool is_sliced = traits_.slices_boundaries || strategy_.sequence_parallel;
    const double activations = work_.tokens() * input_.model.hidden * element_;
    all.boundary = activations / (is_sliced ? strategy_.tp : 1);
    if (traits_.keeps_outputs) all.output = activations;
    all.is_frozen = is_frozen(input_.model);
    all.table = static_cast<double>(input_.model.vocab) * input_.model.hidden / strategy_.tp;
    return all;
  }

 private:
  // The backward of a block on the device, and the launches of it on the host.
  struct BackwardPace {
    Seconds device;
    Seconds host;

    Seconds excess() const { return std::max(host - device, Seconds{}); }
  };

  // In the backward the host waits for nothing and runs ahead of the device, from block to block:
  // the device waits for what all blocks together launch too slowly.
  static void add_backward_idle(MicroBatchWork& all, const workload::BlockCounts& counts,
                                const std::array<BackwardPace, workload::kBlockKinds>& paces) {
    BackwardPace sum;
    Seconds alone;
    for (int kind = 0; kind < workload::kBlockKinds; ++kind) {
      sum.device += at(paces, kind).device * counts[kind];
      sum.host += at(paces, kind).host * counts[kind];
      alone += at(paces, kind).excess() * counts[kind];
    }
    if (alone == Seconds{}) return;
    const double share = sum.excess() / alone;
    for (int kind = 0; kind < workload::kBlockKinds; ++kind)
      at(all.blocks, kind).time.host += at(paces, kind).excess() * share;
  }

  // One block of one micro-batch, forward and backward; without the host's time in the backward,
  // which `pace` is set to.
  BlockWork block(BlockKind kind, BackwardPace& pace) const {
    cost::BlockTime time = gpu_block_time(machine_.engines, input_.stack, work_, kind);
    const Seconds again = time.forward.total();
    if (kind.predicts) add_output_layer(time);
    const bool has_experts = kind.mlp == workload::BlockMlp::kExperts;
    const double share = kind.parts() / 2.0;  // of a block with attention and MLP
    const bool is_full = strategy_.recompute == Recompute::kFull;
    BlockWork block;
    StepBreakdown& part = block.time;
    part.matmul = time.forward.matmul + time.backward.matmul;
    part.attention = time.forward.attention + time.backward.attention;
    part.passes = time.forward.passes + time.backward.passes;
    const double routing = has_experts ? kRouterKernels + expert_kernels() : 0;
    const double kernels_forward = traits_.kernels_forward * share + routing;
    const double kernels_backward = traits_.kernels_backward * share + 2 * routing;
    const Seconds gaps_forward = traits_.kernel_gap * kernels_forward;
    const Seconds gaps_backward = traits_.kernel_gap * kernels_backward;
    part.passes += gaps_forward + gaps_backward;
    if (is_full) part.recompute = again + gaps_forward;
    if (strategy_.recompute == Recompute::kSelective && has_attention(kind.mixer))
      part.recompute = time.forward.attention;
    if (has_experts && needs_experts(strategy_.recompute)) {
      part.recompute = time.pointwise;
      if (strategy_.recompute == Recompute::kExperts) part.recompute += time.experts;
    }

    // Every exchange of the forward is made again, in the other direction, by the backward, and
    // with full recomputation before it.
    const Seconds tp = tensor_exchange(time.forward.matmul, kind);
    const Seconds ep = has_experts ? expert_exchange(time.forward.matmul) : Seconds{};
    part.tp_comm = tp * (is_full ? 3.0 : 2.0);
    const bool exchanges_again = is_full || strategy_.recompute == Recompute::kExperts;
    part.ep_comm = ep * (exchanges_again ? 3.0 : 2.0);
    const Seconds cp_forward = context_exchange(kind.mixer, time.forward.attention, 1);
    const Seconds cp_backward = context_exchange(kind.mixer, time.backward.attention, 2);
    part.cp_comm = cp_forward * (is_full ? 2.0 : 1.0) + cp_backward;

    block.forward = time.forward.total() + gaps_forward + tp + ep + cp_forward;
    const Seconds backward = time.backward.total() + gaps_backward + part.recompute + part.tp_comm -
                             tp + part.ep_comm - ep + part.cp_comm - cp_forward;
    const Seconds launch = input_.stack.calibration.launch;
    const Seconds host_forward = launch * kernels_forward;
    const Seconds host_backward =
        launch * kernels_backward * kBackwardLaunch + (is_full ? host_forward : Seconds{});
    Seconds idle_forward = std::max(host_forward - block.forward, Seconds{});
    pace = {.device = backward, .host = host_backward};
    if (has_experts && waits_for_counts()) {
      idle_forward = synchronised_idle(block.forward, time.experts + ep, share);
      if (exchanges_again) part.host += traits_.experts_sync;
    }
    part.host += idle_forward;
    block.forward += idle_forward;
    block.weight_gradient = time.weight_gradient;
    block.memory =
        gpu_block_memory(input_.stack, work_, strategy_.recompute, input_.precision, kind);
    block.parameters = parameters(block_parameters(input_.model, kind));
    return block;
  }

  // Tokens beyond a capacity are dropped and fewer padded to it: then the host knows the counts.
  bool waits_for_counts() const {
    return traits_.experts_sync > Seconds{} && input_.model.experts.capacity == 0;
  }

  // The time that the device waits for the host in a forward of `device`, of which the experts take
  // `experts`. Nothing is queued when the host goes on after its wait for the counts, so only the
  // experts' own products hide their launches. The block has the `share` of the kernels of one with
  // attention.
  Seconds synchronised_idle(Seconds device, Seconds experts, double share) const {
    const Seconds launch = input_.stack.calibration.launch;
    const Seconds others = launch * (traits_.kernels_forward * share + kRouterKernels);
    return traits_.experts_sync + std::max(launch * expert_kernels() - experts, Seconds{}) +
           std::max(others - (device - experts), Seconds{});
  }

  // Launches of the router and of the sorting of tokens in both directions: softmax, top-k,
  // histogram, prefix sums, sort, gather, scatter and scale, as Megatron-Core's layer has them.
  static constexpr double kRouterKernels = 25;

  // The launches of experts in the forward beside the kernels of an MLP. Each expert of the rank:
  // two products, and in fp8 four casts of their inputs (Transformer Engine's grouped linear
  // layers); inputs of one capacity are cast together.
  double expert_kernels() const {
    const workload::Experts& experts = input_.model.experts;
    const double own = static_cast<double>(experts.count) / strategy_.ep;
    const double casts = is_eight_bits_or_less(input_.precision) ? 4 : 0;
    // The product and the sum of a bias of its own.
    const double biases = input_.model.linear_biases && !traits_.fuses_experts ? 2 : 0;
    return own * (2 + biases) + casts * (experts.capacity > 0 ? 1 : own);
  }

  // A module that predicts has the output layer and the loss once more.
  void add_output_layer(cost::BlockTime& time) const {
    const cost::ComputeTime ends =
        gpu_embedding_and_head_time(machine_.engines, input_.stack, work_);
    time.forward.matmul += ends.matmul / 3;
    time.forward.passes += ends.passes / 3;
    time.backward.matmul += ends.matmul / 1.5;
    time.backward.passes += ends.passes / 1.5;
  }

  // The share of a rank of those of a block.
  cost::RankParameters parameters(const workload::LayerParameters& layer) const {
    const auto plain = [&](long long all) { return static_cast<double>(all) / strategy_.tp; };
    const auto experts = [&](long long all) {
      return static_cast<double>(all) / strategy_.expert_tp() / strategy_.ep;
    };
    cost::RankParameters share{.plain = plain(layer.total() - layer.of_experts()),
                               .experts = experts(layer.of_experts())};
    share.largest_block = share.total();
    if (!is_frozen(input_.model)) return share;
    share.frozen_plain = share.plain - plain(layer.adapters);
    share.frozen_experts = share.experts - experts(layer.expert_adapters);
    return share;
  }

  // An all-reduce of the activations of each part of a block, or as many bytes in gathers and
  // scatters. Folded experts gather what was sent to them over their own tensor ranks, a copy of a
  // token for each of its visits, and scatter it back (Megatron-Core, MoEAlltoAllTokenDispatcher);
  // shared experts stay with the tensor ranks.
  Seconds tensor_exchange(Seconds products, BlockKind kind) const {
    const double bytes = work_.tokens() * input_.model.hidden * element_;
    const cost::ServerNetwork& network = machine_.network;
    const Seconds sum = strategy_.sequence_parallel
                            ? hierarchical_scatter_and_gather_time(network, strategy_.tp, bytes)
                            : hierarchical_all_reduce_time(network, strategy_.tp, bytes);
    Seconds sums = sum * static_cast<double>(kind.parts());
    if (kind.mlp == workload::BlockMlp::kExperts && workload::is_folded(strategy_)) {
      const workload::Experts& experts = input_.model.experts;
      const double sent = work_.tokens() * dispatched_width(input_.model) * element_;
      const double visits = sent * experts.top_k * experts.imbalance * work_.etp / work_.tp;
      sums = sum * static_cast<double>(kind.parts() - (experts.shared > 0 ? 0 : 1)) +
             hierarchical_scatter_and_gather_time(network, work_.etp, visits);
    }
    return exposed(sums, products, strategy_.sequence_parallel ? traits_.tp_overlap : 0);
  }

  // Tokens to their experts and back.
  Seconds expert_exchange(Seconds products) const {
    const workload::Experts& experts = input_.model.experts;
    const double tokens = work_.tokens() / (strategy_.sequence_parallel ? strategy_.tp : 1);
    const double bytes = tokens * dispatched_width(input_.model) * element_;
    // Buffers of a fixed capacity hold a copy an expert.
    const bool is_once_a_rank = traits_.dispatches_once_a_rank && experts.capacity == 0;
    const auto exchange = [&](double sent) {
      return cost::dispatch_time(machine_.network,
                                 {.ranks = strategy_.ep,
                                  .stride = work_.etp,
                                  .copies = experts.top_k,
                                  .is_once_a_rank = is_once_a_rank,
                                  .reach = experts.reach()},
                                 sent * experts.imbalance);
    };
    const bool is_narrow = traits_.dispatches_narrow && is_eight_bits_or_less(input_.precision);
    const Seconds both = exchange(is_narrow ? bytes / 2 : bytes) + exchange(bytes);
    return exposed(both, products, traits_.ep_overlap);
  }

  // The exchange of keys and values, `times` their bytes. A ring sends while the attention over the
  // present part runs.
  Seconds context_exchange(Mixer mixer, Seconds attention, double times) const {
    if (strategy_.cp == 1 || mixer == Mixer::kNone) return {};
    const workload::AttentionShape shape = attention_shape(input_.model);
    const double heads = std::max(1.0, static_cast<double>(shape.kv_heads) / strategy_.tp);
    const double dims = shape.key_dim + shape.value_dim;
    const double tokens = work_.tokens();
    const cost::RankGroup group = {
        .ranks = strategy_.cp,
        .inside = ranks_inside(machine_.network, strategy_.cp, strategy_.tp),
        .rings = std::min(strategy_.tp, machine_.network.devices),
        .extent = strategy_.tp * strategy_.cp};
    if (mixer == Mixer::kStateSpace) return state_space_exchange(group);
    if (strategy_.context == ContextParallelism::kAllToAll) {
      const double queries = static_cast<double>(shape.heads) / strategy_.tp * dims;
      const double bytes = times * tokens * element_ * (heads * dims + queries);
      return cost::all_to_all_time(machine_.network, group, bytes);
    }
    const double steps = strategy_.cp - 1;
    const Seconds step =
        cost::ring_step_time(machine_.network, group, times * tokens * element_ * heads * dims);
    return exposed(step, attention / strategy_.cp, 1) * steps;
  }

  // A state goes through the whole sequence: ranks exchange tokens for heads before it, and back.
  Seconds state_space_exchange(const cost::RankGroup& group) const {
    const workload::StateSpace& space = input_.model.state_space;
    const auto sent = static_cast<double>(space.projected() + space.inner());
    return cost::all_to_all_time(machine_.network, group,
                                 work_.tokens() * element_ * sent / strategy_.tp);
  }

  const EstimateInput& input_;
  const workload::Strategy& strategy_;
  const cost::StackTraits& traits_;
  const MachineModel& machine_;
  cost::RankWork work_;
  double element_;  // bytes of an activation
};

}  // namespace

MicroBatchWork micro_batch_work(const EstimateInput& input, const MachineModel& machine) {
  return Work(input, machine).micro_batch();
}

}  // namespace regatta::plan
