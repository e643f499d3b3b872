#include "regatta/planning/plan/internal/simulate/step_program.h"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "regatta/base/core/ids.h"
#include "regatta/base/core/result.h"
#include "regatta/model/cost/collective.h"
#include "regatta/model/cost/memory.h"
#include "regatta/model/pipeline/pipeline_order.h"
#include "regatta/planning/plan/internal/simulate/rank_times.h"
#include "regatta/planning/plan/internal/simulate/step_operations.h"

namespace regatta::plan {
namespace {

using workload::Phase;

// Numbers of elements in the flat gradient array, in the order in which backward ends them.
struct GradientLayout {
  long long head = 0;
  long long mlp = 0;        // of one block
  long long attention = 0;  // of one block
  long long embedding = 0;
};

GradientLayout gradient_layout(const workload::ModelShape& model,
                               const workload::Strategy& strategy) {
  const int tp = strategy.tp;
  // Tied and in one stage, there is one table, and the embedding ends it.
  const bool one_table = model.tied_embeddings && strategy.pp == 1;
  const long long h = model.hidden;
  const long long f = model.ffn_hidden;
  return {.head = (one_table ? 0 : h * model.vocab / tp) + 2 * h,
          .mlp = (2 * h * f + f) / tp + h + 2 * h,
          .attention = (4 * h * h + 3 * h) / tp + h + 2 * h,
          .embedding = h * model.vocab / tp + h * model.seq};
}

// Writes the program of one lockstep group after the other.
class Builder {
 public:
  explicit Builder(const StepShape& shape)
      : shape_(shape), layout_(gradient_layout(shape.model, shape.strategy)) {}

  Result<BuiltStep> build() {
    step_.program.groups.resize(as_index(shape_.strategy.pp * shape_.strategy.dp));
    make_rank_times();
    REGATTA_TRY(made, make_operations(shape_, step_));
    made_ = std::move(made);
    for (int pp = 0; pp < shape_.strategy.pp; ++pp) {
      for (int dp = 0; dp < shape_.strategy.dp; ++dp)
        make_cell(pp, dp);
    }
    return std::move(step_);
  }

 private:
  void make_rank_times() {
    const cost::RankShape shape{shape_.model, shape_.context.job.precision, shape_.strategy.tp,
                                shape_.strategy.micro_batch};
    std::map<std::string, RankTimes> by_type;
    for (int pp = 0; pp < shape_.strategy.pp; ++pp) {
      for (int dp = 0; dp < shape_.strategy.dp; ++dp) {
        RankTimes group;
        double optimizer = 0;
        for (int tp = 0; tp < shape_.strategy.tp; ++tp) {
          const std::string& type =
              shape_.context.cluster.type_of(shape_.device(pp, dp, tp).server).device.name;
          const cost::DeviceRates& rates = shape_.context.rates.devices.at(type);
          if (!by_type.contains(type)) by_type[type] = rank_times(rates, shape);
          group = slower_of(group, by_type[type]);
          const double time =
              cost::operators_time(
                  rates, shape_.context.job.precision,
                  cost::optimizer_step(cost::rank_parameters(shape_.model, shape_.strategy, pp),
                                       shape_.context.job.precision))
                  .value;
          optimizer = std::max(optimizer, time);
        }
        times_.push_back(group);
        optimizer_times_.push_back(optimizer);
      }
    }
  }

  // Operation of boundary `boundary` (between it and the next stage).
  int transfer_of(const std::vector<int>& list, int boundary, int dp, int micro_batch) const {
    return at(list, (boundary * shape_.strategy.dp + dp) * shape_.micro_batches + micro_batch);
  }

  void compute(Phase phase, double seconds) {
    since_tensor_ += seconds;
    auto& actions = at(step_.program.groups, group_);
    if (!actions.empty() && actions.back().kind == StepActionKind::kCompute &&
        actions.back().phase == phase && actions.back().micro_batch == micro_batch_ &&
        actions.back().layer == layer_) {
      actions.back().seconds += seconds;
      return;
    }
    actions.push_back({StepActionKind::kCompute, phase, micro_batch_, layer_, seconds, -1});
  }

  void post(int operation) {
    at(step_.program.groups, group_)
        .push_back({StepActionKind::kPost, Phase::kOther, micro_batch_, layer_, 0, operation});
  }

  void wait(Phase phase, int operation) {
    at(step_.program.groups, group_)
        .push_back({StepActionKind::kWait, phase, micro_batch_, layer_, 0, operation});
  }

  // How long the tensor ranks wait for the last of them: as long as cost::cpu_throttling_wait()
  // where they computed for a period since they last met, in proportion where for less.
  double last_rank() const {
    const double share =
        shape_.context.cluster.type_of(shape_.placement.front().server).device.cpu_share;
    return cost::cpu_throttling_wait(share, shape_.strategy.tp).value *
           std::min(1.0, since_tensor_ / cost::kCfsPeriod.value);
  }

  // A collective of this group that runs while `overlapped` is computed.
  void tensor(const std::vector<OperationTemplate>& patterns,
              Phase overlap_phase = Phase::kBackward, double overlapped = 0) {
    if (shape_.strategy.tp == 1) {
      if (overlapped > 0) compute(overlap_phase, overlapped);
      return;
    }
    const int operation = add_operation(
        step_.program, at(patterns, group_),
        {.latency = last_rank(), .phase = Phase::kTpComm, .micro_batch = micro_batch_});
    since_tensor_ = 0;
    post(operation);
    if (overlapped > 0) compute(overlap_phase, overlapped);
    wait(Phase::kTpComm, operation);
  }

  void block_forward_pass(Phase phase) {
    const RankTimes& t = at(times_, group_);
    const bool again = phase == Phase::kRecompute;
    compute(phase, again ? t.attention_recompute : t.attention_forward);
    tensor(made_.tensor_sums);
    compute(phase, again ? t.mlp_recompute : t.mlp_forward);
    if (!again) tensor(made_.tensor_sums);
  }

  // With one tensor rank nothing interrupts a stage, so its blocks count as one piece.
  void enter_layer(int layer) { layer_ = shape_.strategy.tp > 1 ? layer : -1; }

  void forward(int pp, int dp, int micro_batch) {
    const RankTimes& t = at(times_, group_);
    micro_batch_ = micro_batch;
    layer_ = -1;
    if (pp == 0) {
      compute(Phase::kForward, t.embedding_forward);
      tensor(made_.tensor_sums);
    } else {
      wait(Phase::kPpComm, transfer_of(made_.activations, pp - 1, dp, micro_batch));
      if (shape_.is_sliced) tensor(made_.tensor_gathers);
    }
    const workload::LayerRange range = workload::stage_layers(shape_.model, shape_.strategy, pp);
    for (int layer = range.first; layer < range.first + range.count; ++layer) {
      enter_layer(layer);
      block_forward_pass(Phase::kForward);
    }
    layer_ = -1;
    if (pp == shape_.strategy.pp - 1) {
      compute(Phase::kForward, t.head_forward);
      tensor(made_.loss_largest);
      tensor(made_.loss_sums);
    } else {
      post(transfer_of(made_.activations, pp, dp, micro_batch));
    }
  }

  void block_backward_pass(const std::function<void(long long)>& ready) {
    const RankTimes& t = at(times_, group_);
    if (shape_.strategy.recompute == workload::Recompute::kFull)
      block_forward_pass(Phase::kRecompute);
    compute(Phase::kBackward, t.mlp_backward);
    tensor(made_.tensor_sums, Phase::kBackward, t.mlp_overlapped);
    ready(layout_.mlp);
    compute(Phase::kBackward, t.attention_backward);
    tensor(made_.tensor_sums, Phase::kBackward, t.attention_overlapped);
    compute(Phase::kBackward, t.last_backward);
    ready(layout_.attention);
  }

  void backward(int pp, int dp, int micro_batch) {
    const RankTimes& t = at(times_, group_);
    micro_batch_ = micro_batch;
    layer_ = -1;
    long long final_elements = 0;
    std::size_t posted = 0;
    const auto ready = [&](long long elements) {
      if (!shape_.strategy.overlap || micro_batch + 1 < shape_.micro_batches) return;
      final_elements += elements;
      const auto& buckets = at(made_.buckets, pp);
      while (posted < buckets.size() &&
             static_cast<long long>(posted + 1) * workload::kGradientBucketElements <=
                 final_elements)
        post(buckets[posted++]);
    };
    if (pp == shape_.strategy.pp - 1) {
      compute(Phase::kBackward, t.head_backward);
      tensor(made_.tensor_sums, Phase::kBackward, t.head_overlapped);
      compute(Phase::kBackward, t.head_last);
      ready(layout_.head);
    } else {
      wait(Phase::kPpComm, transfer_of(made_.gradients, pp, dp, micro_batch));
      if (shape_.is_sliced) tensor(made_.tensor_gathers);
    }
    const workload::LayerRange range = workload::stage_layers(shape_.model, shape_.strategy, pp);
    for (int layer = range.first + range.count; layer-- > range.first;) {
      enter_layer(layer);
      block_backward_pass(ready);
    }
    layer_ = -1;
    if (pp == 0) {
      compute(Phase::kBackward, t.embedding_backward);
      ready(layout_.embedding);
    } else {
      post(transfer_of(made_.gradients, pp - 1, dp, micro_batch));
    }
    if (micro_batch + 1 == shape_.micro_batches) {
      for (; posted < at(made_.buckets, pp).size(); ++posted)
        post(at(made_.buckets, pp)[posted]);
    }
  }

  void make_cell(int pp, int dp) {
    group_ = shape_.group_of(pp, dp);
    since_tensor_ = 0;
    const pipeline::PipelineShape pipeline{.stages = shape_.strategy.pp,
                                           .micro_batches = shape_.micro_batches};
    for (const pipeline::Pass& pass : pipeline::stage_order(pipeline, pp)) {
      if (pass.kind == pipeline::PassKind::kForward)
        forward(pp, dp, pass.micro_batch);
      else
        backward(pp, dp, pass.micro_batch);
    }
    micro_batch_ = -1;
    layer_ = -1;
    // The step ends when everything is sent.
    for (int i = 0; i < shape_.micro_batches; ++i) {
      if (pp + 1 < shape_.strategy.pp)
        wait(Phase::kPpComm, transfer_of(made_.activations, pp, dp, i));
      if (pp > 0) wait(Phase::kPpComm, transfer_of(made_.gradients, pp - 1, dp, i));
    }
    for (const int bucket : at(made_.buckets, pp))
      wait(Phase::kDpComm, bucket);
    if (!made_.ties.empty() && (pp == 0 || pp == shape_.strategy.pp - 1)) {
      post(at(made_.ties, dp));
      wait(Phase::kDpComm, at(made_.ties, dp));
    }
    if (made_.norm >= 0) {
      post(made_.norm);
      // With stages it is the wait for the one that drains last.
      wait(shape_.strategy.pp > 1 ? Phase::kBubble : Phase::kDpComm, made_.norm);
    }
    compute(Phase::kOptimizer, at(optimizer_times_, group_));
  }

  const StepShape shape_;
  const GradientLayout layout_;

  BuiltStep step_;
  std::vector<RankTimes> times_;         // by group
  std::vector<double> optimizer_times_;  // by group
  StepOperations made_;
  int group_ = 0;
  int micro_batch_ = -1;
  int layer_ = -1;
  double since_tensor_ = 0;  // seconds computed
};

}  // namespace

Result<BuiltStep> build_step(const PlanContext& context, const workload::Strategy& strategy,
                             const std::vector<topo::DeviceRef>& placement) {
  REGATTA_TRY(count,
              workload::micro_batches(context.job.model, strategy, context.job.global_batch));
  REGATTA_CHECK(placement.size() == as_index(strategy.world_size()));
  return Builder(StepShape(context, strategy, placement, count)).build();
}

}  // namespace regatta::plan
