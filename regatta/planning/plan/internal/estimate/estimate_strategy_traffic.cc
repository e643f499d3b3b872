#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "regatta/base/core/ids.h"
#include "regatta/model/cost/collective.h"
#include "regatta/model/cost/memory.h"
#include "regatta/planning/plan/estimate.h"
#include "regatta/planning/plan/internal/estimate/replica_communication.h"
#include "regatta/planning/plan/internal/estimate/stage_blocks.h"
#include "regatta/planning/plan/internal/estimate/stage_times.h"

namespace regatta::plan {
namespace {

using workload::PipelineSchedule;

class TrafficEstimate {
 public:
  TrafficEstimate(const EstimateInput& input, const MicroBatchWork& work, int micro_batches)
      : input_(input),
        strategy_(input.strategy),
        work_(work),
        fold_(workload::expert_fold(strategy_)),
        micro_batches_(micro_batches),
        element_(bytes_per_element(input.precision)) {
    blocks_ = stage_share(most_layers());
    tokens_ = static_cast<double>(strategy_.micro_batch) * input.model.seq / strategy_.cp;
    passes_ = strategy_.recompute == workload::Recompute::kFull ? 3 : 2;
  }

  StrategyTraffic all() const {
    StrategyTraffic traffic;
    traffic[index(ParallelAxis::kTp)] = tensor();
    traffic[index(ParallelAxis::kCp)] = context();
    traffic[index(ParallelAxis::kEp)] = experts();
    traffic[index(ParallelAxis::kPp)] = pipeline();
    traffic[index(ParallelAxis::kDp)] = replicas();
    return traffic;
  }

 private:
  static std::size_t index(ParallelAxis axis) { return static_cast<std::size_t>(axis); }

  double most_layers() const {
    if (strategy_.stage_layers.empty())
      return std::ceil(static_cast<double>(input_.model.layers) / strategy_.pp);
    int most = 0;
    for (int stage = 0; stage < strategy_.pp; ++stage)
      most = std::max(most, layers_on_stage(input_.model, strategy_, stage));
    return most;
  }

  // The share of all blocks that `count` layers are.
  workload::BlockCounts stage_share(double count) const {
    const double layers = input_.model.layers;
    if (are_stages_alike(input_.model)) {
      const double dense = workload::has_experts(input_.model)
                               ? workload::dense_layers(input_.model) / layers * count
                               : count;
      return workload::dense_and_expert_blocks(dense, count - dense);
    }
    workload::BlockCounts all = all_blocks(input_.model);
    all *= count / layers;
    return all;
  }

  // The sum of `value(kind)` over the blocks of a stage.
  double sum_of(const auto& value) const {
    double sum = 0;
    for (int kind = 0; kind < workload::kBlockKinds; ++kind)
      if (blocks_[kind] > 0) sum += value(kind) * blocks_[kind];
    return sum;
  }

  Seconds of_step(Seconds StepBreakdown::*part) const {
    return Seconds{sum_of([&](int kind) { return (at(work_.blocks, kind).time.*part).value; })} *
           micro_batches_;
  }
  workload::BlockKind kind_of(int kind) const { return block_kind(input_.model, kind); }
  bool has_experts(int kind) const { return kind_of(kind).mlp == workload::BlockMlp::kExperts; }
  double expert_blocks() const {
    return sum_of([&](int kind) { return has_experts(kind) ? 1.0 : 0.0; });
  }
  // Products of a forward pass are a third of all.
  Seconds products() const { return of_step(&StepBreakdown::matmul) * (passes_ / 3); }

  AxisTraffic tensor() const {
    AxisTraffic axis;
    if (strategy_.tp == 1 && fold_.etp == 1) return axis;
    const workload::Experts& experts = input_.model.experts;
    const double passes = passes_ * micro_batches_;
    const double bytes = tokens_ * input_.model.hidden * element_ * 2;
    double sums =
        passes_ * (sum_of([&](int kind) { return kind_of(kind).parts(); }) * micro_batches_);
    if (workload::is_folded(strategy_)) {
      // Routed experts have sums of their own, over what was sent to them.
      const double blocks = expert_blocks();
      sums = passes * sum_of([&](int kind) {
               return kind_of(kind).parts() - (has_experts(kind) && experts.shared == 0 ? 1 : 0);
             });
      const double sent = bytes / input_.model.hidden * dispatched_width(input_.model);
      add_ring(
          axis, fold_.etp,
          sent * experts.top_k * experts.imbalance * fold_.etp / strategy_.tp * passes * blocks);
    }
    add_ring(axis, strategy_.tp, bytes * sums);
    axis.overlap = strategy_.sequence_parallel ? input_.stack.traits.tp_overlap : 0;
    axis.beside = products();
    return axis;
  }

  // Neighbours, each of which holds `bytes` to sum.
  static void add_ring(AxisTraffic& axis, int ranks, double bytes) {
    if (ranks > 1)
      axis.lines.push_back({GroupPattern::kRing, ranks, 1, bytes * cost::pass_share(ranks)});
  }

  // Keys and values around the ring, once forward and twice backward.
  AxisTraffic context() const {
    AxisTraffic axis;
    if (strategy_.cp == 1) return axis;
    const workload::AttentionShape shape = attention_shape(input_.model);
    const double dims = shape.key_dim + shape.value_dim;
    const double heads = std::max(1.0, static_cast<double>(shape.kv_heads) / strategy_.tp);
    const double queries = static_cast<double>(shape.heads) / strategy_.tp;
    const double blocks =
        sum_of([&](int kind) { return has_attention(kind_of(kind).mixer) ? 1.0 : 0.0; });
    const double times = (passes_ + 1) * (blocks * micro_batches_) * tokens_ * element_ * dims;
    if (strategy_.context == workload::ContextParallelism::kAllToAll) {
      axis.lines.push_back({GroupPattern::kExchange, strategy_.cp, strategy_.tp,
                            times * (heads + queries) * (strategy_.cp - 1) / strategy_.cp});
      return axis;
    }
    axis.lines.push_back(
        {GroupPattern::kRing, strategy_.cp, strategy_.tp, times * heads * (strategy_.cp - 1)});
    axis.overlap = 1;
    axis.beside = of_step(&StepBreakdown::attention);
    return axis;
  }

  // Tokens to their experts and back; a server is sent one copy however many of its ranks want it
  // (cost::dispatch_time).
  AxisTraffic experts() const {
    AxisTraffic axis;
    const double blocks = expert_blocks();
    if (strategy_.ep == 1 || blocks == 0) return axis;
    const double ranks = strategy_.ep;
    const double inside = std::clamp<double>(
        static_cast<double>(joined_devices(input_)) / fold_.ep_stride(), 1, ranks);
    if (inside >= ranks) return axis;
    const double servers = ranks / inside;
    const workload::Experts& experts = input_.model.experts;
    const double tokens = tokens_ / (strategy_.sequence_parallel ? strategy_.tp : 1);
    const double outside = tokens * dispatched_width(input_.model) * element_ * experts.imbalance *
                           cost::copies_to_other_servers(servers, experts.top_k, experts.reach());
    const double passes = strategy_.recompute == workload::Recompute::kExperts ? 3 : passes_;
    axis.lines.push_back(
        {GroupPattern::kExchange, strategy_.ep, fold_.ep_stride(),
         outside * 2 * passes * blocks * micro_batches_ * (ranks - 1) / (ranks - inside)});
    axis.overlap = input_.stack.traits.ep_overlap;
    axis.beside = products();
    if (strategy_.schedule == PipelineSchedule::kDualPipe) {
      // Beside the computation of another micro-batch (overlap_exchanges()).
      axis.overlap = 1;
      axis.beside =
          products() + of_step(&StepBreakdown::attention) + of_step(&StepBreakdown::passes);
    }
    return axis;
  }

  // Activations forward and their gradients back.
  AxisTraffic pipeline() const {
    AxisTraffic axis;
    if (strategy_.pp == 1) return axis;
    const int stride = strategy_.world_size() / strategy_.pp;
    const double round = work_.boundary * micro_batches_;
    const int parts = workload::parts_per_stage(strategy_);
    axis.lines.push_back({GroupPattern::kChain, strategy_.pp, stride, round * parts});
    if (strategy_.schedule == PipelineSchedule::kInterleaved)
      axis.lines.push_back({GroupPattern::kEnds, strategy_.pp, stride, round * (parts - 1)});
    axis.overlap = input_.stack.traits.pp_overlap;
    axis.beside = of_step(&StepBreakdown::matmul);
    return axis;
  }

  GradientSum sum_of_gradients() const {
    return gradient_sum(input_.stack.traits, strategy_, input_.precision, micro_batches_);
  }

  // Sums of gradients and gathers of weights. Groups that share a copy of the state lie together,
  // and sum their shards with the others.
  struct Held {
    double trained = 0;
    double frozen = 0;
  };
  void add_replicas(AxisTraffic& axis, const Held& held, int stride, int copies, int shared) const {
    const GradientSum sum = sum_of_gradients();
    const auto add = [&](int ranks, int apart, double bytes) {
      if (ranks > 1 && bytes > 0)
        axis.lines.push_back({GroupPattern::kRing, ranks, apart, bytes * cost::pass_share(ranks)});
    };
    if (strategy_.zero == 3) {
      const double weights = held.trained + kGathersOfSharedWeights * (held.trained + held.frozen);
      add(shared, stride, weights * element_ * micro_batches_);
      add(copies / shared, stride * shared, 2 * held.trained / shared * sum.bytes);
      return;
    }
    const double passes = sum.kind == cost::Collective::kAllReduce ? 2 : sum.rounds;
    add(copies, stride, held.trained * (passes * sum.bytes + (strategy_.zero > 0 ? element_ : 0)));
  }

  AxisTraffic replicas() const {
    AxisTraffic axis;
    const int copies = strategy_.dp * strategy_.cp;
    if (copies == 1 && fold_.edp == 1) return axis;
    const auto all = [&](double cost::RankParameters::*part) {
      return sum_of([&](int kind) { return at(work_.blocks, kind).parameters.*part; });
    };
    Held plain{.trained = all(&cost::RankParameters::plain) + work_.table,
               .frozen = all(&cost::RankParameters::frozen_plain)};
    if (work_.is_frozen) plain.frozen += work_.table;
    plain.trained -= plain.frozen;
    Held experts{.trained = all(&cost::RankParameters::experts),
                 .frozen = all(&cost::RankParameters::frozen_experts)};
    experts.trained -= experts.frozen;
    const cost::Shards shards = cost::shards_of(strategy_);
    add_replicas(axis, plain, strategy_.tp, copies, static_cast<int>(shards.plain));
    // ZeRO may not divide the fewer copies of experts evenly: then fewer share.
    add_replicas(axis, experts, fold_.edp_stride(), fold_.edp,
                 std::gcd(fold_.edp, static_cast<int>(shards.experts)));
    axis.overlap = strategy_.overlap ? std::clamp(input_.stack.traits.dp_overlap, 0.0, 1.0) : 0;
    const StageTime slot = slowest_stage(input_, work_, static_cast<int>(micro_batches_));
    const HidingPasses passes = hiding_passes(strategy_, sum_of_gradients(), micro_batches_);
    axis.beside =
        slot.forward * passes.forwards + (slot.all.total() - slot.forward) * passes.backwards;
    return axis;
  }

  const EstimateInput& input_;
  const workload::Strategy& strategy_;
  const MicroBatchWork& work_;
  workload::ExpertFold fold_;
  double micro_batches_;
  double element_;                // bytes of an activation or a weight
  workload::BlockCounts blocks_;  // of a stage
  double tokens_ = 0;             // of a rank in a micro-batch
  double passes_ = 2;             // in which exchanges of a block are made
};

}  // namespace

Seconds exposed_time(const AxisTraffic& axis, Seconds exchange) {
  return exposed(exchange, axis.beside, axis.overlap);
}

StrategyTraffic strategy_traffic(const EstimateInput& input, const MicroBatchWork& work,
                                 int micro_batches) {
  return TrafficEstimate(input, work, micro_batches).all();
}

}  // namespace regatta::plan
