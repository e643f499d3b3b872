#include "regatta/plan/step_program.h"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "regatta/core/check.h"
#include "regatta/cost/collective.h"
#include "regatta/cost/memory.h"
#include "regatta/plan/rank_times.h"

namespace regatta::plan {
namespace {

using workload::Phase;

constexpr double kGradientBytes = 4;

std::size_t at(int index) {
  return static_cast<std::size_t>(index);
}

// A collective or transfer that many operations are made of.
struct Pattern {
  int transfer = -1;
  double latency = 0;
};

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

class Builder {
 public:
  Builder(const PlanContext& context, const workload::Strategy& strategy,
          const std::vector<topo::DeviceRef>& placement, int micro_batches)
      : context_(context),
        model_(context.job.model),
        strategy_(strategy),
        placement_(placement),
        micro_batches_(micro_batches),
        layout_(gradient_layout(model_, strategy)) {
    const double element = workload::bytes_per_element(context.job.precision);
    tokens_ = static_cast<double>(strategy.micro_batch) * model_.seq;
    boundary_bytes_ = element * tokens_ * model_.hidden;
    sliced_ = static_cast<long long>(tokens_) % strategy.tp == 0;
  }

  Result<BuiltStep> build() {
    step_.program.cells.resize(at(strategy_.pp * strategy_.dp));
    make_rank_times();
    REGATTA_TRY_DO(make_tensor_patterns());
    REGATTA_TRY_DO(make_boundaries());
    REGATTA_TRY_DO(make_buckets());
    REGATTA_TRY_DO(make_closing());
    for (int pp = 0; pp < strategy_.pp; ++pp) {
      for (int dp = 0; dp < strategy_.dp; ++dp)
        make_cell(pp, dp);
    }
    return std::move(step_);
  }

 private:
  int cell_of(int pp, int dp) const { return pp * strategy_.dp + dp; }
  topo::DeviceRef device(int pp, int dp, int tp) const {
    return placement_[workload::rank_at(strategy_, {.tp = tp, .dp = dp, .pp = pp}).index()];
  }

  void make_rank_times() {
    const cost::RankShape shape{model_, context_.job.precision, strategy_.tp,
                                strategy_.micro_batch};
    std::map<std::string, RankTimes> by_type;
    for (int pp = 0; pp < strategy_.pp; ++pp) {
      for (int dp = 0; dp < strategy_.dp; ++dp) {
        RankTimes cell;
        double optimizer = 0;
        for (int tp = 0; tp < strategy_.tp; ++tp) {
          const std::string& type = context_.cluster.type_of(device(pp, dp, tp).server).device.name;
          const cost::DeviceRates& rates = context_.rates.devices.at(type);
          if (!by_type.contains(type)) by_type[type] = rank_times(rates, shape);
          cell = slower_of(cell, by_type[type]);
          const double time = cost::operators_time(
                                  rates, context_.job.precision,
                                  cost::optimizer_step(cost::rank_parameters(model_, strategy_, pp),
                                                       context_.job.precision))
                                  .value;
          optimizer = std::max(optimizer, time);
        }
        times_.push_back(cell);
        optimizer_times_.push_back(optimizer);
      }
    }
  }

  // Pattern of a set of flows that each carry `bytes` and of `steps` latencies; `count` of them
  // run in a step, for traffic.
  Result<Pattern> pattern(const std::vector<DevicePair>& pairs, const cost::CollectiveCost& cost,
                          double count) {
    REGATTA_TRY(flows, context_.network.flows(pairs));
    for (const DevicePair& pair : pairs)
      step_.traffic.push_back({pair, cost.bytes * count});
    step_.program.transfers.push_back({std::move(flows.loads), cost.bytes});
    return Pattern{static_cast<int>(step_.program.transfers.size()) - 1,
                   flows.latency.value * cost.steps};
  }

  std::vector<DevicePair> tensor_ring(int pp, int dp) const {
    std::vector<DevicePair> pairs;
    pairs.reserve(at(strategy_.tp));
    for (int tp = 0; tp < strategy_.tp; ++tp)
      pairs.push_back({device(pp, dp, tp), device(pp, dp, (tp + 1) % strategy_.tp)});
    return pairs;
  }

  // The all-reduces of every cell: of [tokens, hidden], of the loss's [tokens] and [2, tokens], and
  // the gather that makes a received boundary whole.
  Status make_tensor_patterns() {
    if (strategy_.tp == 1) return {};
    const Bytes whole{static_cast<long long>(boundary_bytes_)};
    const bool recompute = strategy_.recompute == workload::Recompute::kFull;
    for (int pp = 0; pp < strategy_.pp; ++pp) {
      const int layers = workload::stage_layers(model_, strategy_.pp, pp).count;
      const double ends = (pp == 0 ? 1 : 0) + (pp == strategy_.pp - 1 ? 1 : 0);
      const double count = micro_batches_ * (layers * (recompute ? 5.0 : 4.0) + ends);
      const double gathers = sliced_ ? micro_batches_ * (2 - ends) : 0;
      for (int dp = 0; dp < strategy_.dp; ++dp) {
        const auto ring = tensor_ring(pp, dp);
        REGATTA_TRY(sum, pattern(ring, cost::all_reduce_cost(whole, strategy_.tp), count));
        tensor_sums_.push_back(sum);
        REGATTA_TRY(gather, pattern(ring, cost::reduce_scatter_cost(whole, strategy_.tp), gathers));
        tensor_gathers_.push_back(gather);
        const Bytes row{static_cast<long long>(4 * tokens_)};
        const double losses = pp == strategy_.pp - 1 ? micro_batches_ : 0;
        REGATTA_TRY(largest, pattern(ring, cost::all_reduce_cost(row, strategy_.tp), losses));
        loss_largest_.push_back(largest);
        REGATTA_TRY(sums, pattern(ring, cost::all_reduce_cost(row * 2.0, strategy_.tp), losses));
        loss_sums_.push_back(sums);
      }
    }
    return {};
  }

  int new_operation(const Pattern& pattern, Phase phase, int members, int channel,
                    int micro_batch) {
    Operation operation;
    operation.transfer = pattern.transfer;
    operation.latency = pattern.latency;
    operation.members = members;
    operation.channel = channel;
    operation.phase = phase;
    operation.micro_batch = micro_batch;
    step_.program.operations.push_back(operation);
    return static_cast<int>(step_.program.operations.size()) - 1;
  }

  // Transfers between stages: each rank sends its share of the rows to its twin.
  Status make_boundaries() {
    for (int boundary = 0; boundary + 1 < strategy_.pp; ++boundary) {
      for (int dp = 0; dp < strategy_.dp; ++dp) {
        REGATTA_TRY_DO(make_boundary({.dp = dp, .pp = boundary}, true));
        REGATTA_TRY_DO(make_boundary({.dp = dp, .pp = boundary}, false));
      }
    }
    return {};
  }

  // One replica's transfers between stage `lower.pp` and the next: up carries activations.
  Status make_boundary(const workload::RankCoordinates& lower, bool up) {
    std::vector<DevicePair> pairs;
    pairs.reserve(at(strategy_.tp));
    for (int tp = 0; tp < strategy_.tp; ++tp) {
      const topo::DeviceRef below = device(lower.pp, lower.dp, tp);
      const topo::DeviceRef above = device(lower.pp + 1, lower.dp, tp);
      pairs.push_back(up ? DevicePair{below, above} : DevicePair{above, below});
    }
    const double bytes = sliced_ ? boundary_bytes_ / strategy_.tp : boundary_bytes_;
    REGATTA_TRY(one, pattern(pairs, {1, bytes}, micro_batches_));
    const int channel = step_.program.channels++;
    auto& list = up ? activations_ : gradients_;
    for (int i = 0; i < micro_batches_; ++i)
      list.push_back(new_operation(one, Phase::kPpComm, 1, channel, i));
    return {};
  }

  // Operation of boundary `boundary` (between it and the next stage).
  int transfer_of(const std::vector<int>& list, int boundary, int dp, int micro_batch) const {
    return list[at((boundary * strategy_.dp + dp) * micro_batches_ + micro_batch)];
  }

  long long stage_elements(int pp) const { return cost::rank_parameters(model_, strategy_, pp); }

  // The gradient buckets of each stage: rings over the replicas, one ring per tensor rank.
  Status make_buckets() {
    buckets_.resize(at(strategy_.pp));
    if (strategy_.dp == 1) return {};
    for (int pp = 0; pp < strategy_.pp; ++pp) {
      std::vector<DevicePair> pairs;
      for (int tp = 0; tp < strategy_.tp; ++tp) {
        for (int dp = 0; dp < strategy_.dp; ++dp)
          pairs.push_back({device(pp, dp, tp), device(pp, (dp + 1) % strategy_.dp, tp)});
      }
      const int channel = step_.program.channels++;
      const long long total = stage_elements(pp);
      const long long full = total / workload::kGradientBucketElements;
      const auto bucket_pattern = [&](long long elements, double count) {
        const Bytes size{static_cast<long long>(kGradientBytes) * elements};
        return pattern(pairs, cost::all_reduce_cost(size, strategy_.dp), count);
      };
      if (full > 0) {
        REGATTA_TRY(one,
                    bucket_pattern(workload::kGradientBucketElements, static_cast<double>(full)));
        for (long long i = 0; i < full; ++i)
          buckets_[at(pp)].push_back(new_operation(one, Phase::kDpComm, strategy_.dp, channel, -1));
      }
      if (total % workload::kGradientBucketElements > 0) {
        REGATTA_TRY(rest, bucket_pattern(total % workload::kGradientBucketElements, 1));
        buckets_[at(pp)].push_back(new_operation(rest, Phase::kDpComm, strategy_.dp, channel, -1));
      }
    }
    return {};
  }

  // What ends the step: the tied table's gradient between the first and the last stage, and the
  // gradient norm over all ranks.
  Status make_closing() {
    if (model_.tied_embeddings && strategy_.pp > 1) {
      const Bytes table{static_cast<long long>(kGradientBytes) * model_.hidden * model_.vocab /
                        strategy_.tp};
      for (int dp = 0; dp < strategy_.dp; ++dp) {
        std::vector<DevicePair> pairs;
        for (int tp = 0; tp < strategy_.tp; ++tp) {
          const topo::DeviceRef first = device(0, dp, tp);
          const topo::DeviceRef last = device(strategy_.pp - 1, dp, tp);
          pairs.push_back({first, last});
          pairs.push_back({last, first});
        }
        REGATTA_TRY(one, pattern(pairs, cost::all_reduce_cost(table, 2), 1));
        ties_.push_back(new_operation(one, Phase::kDpComm, 2, -1, -1));
      }
    }
    const int ranks = strategy_.world_size();
    if (ranks == 1) return {};
    std::vector<DevicePair> pairs;
    pairs.reserve(at(ranks));
    for (int rank = 0; rank < ranks; ++rank)
      pairs.push_back({placement_[at(rank)], placement_[at((rank + 1) % ranks)]});
    const cost::CollectiveCost norm = cost::all_reduce_cost(Bytes{8}, ranks);
    REGATTA_TRY(flows, context_.network.flows(pairs));
    norm_ = new_operation({-1, flows.latency.value * norm.steps}, Phase::kDpComm,
                          strategy_.pp * strategy_.dp, -1, -1);
    return {};
  }

  // --- the program of one cell -------------------------------------------------------------------

  void compute(Phase phase, double seconds) {
    auto& actions = step_.program.cells[at(cell_)];
    if (!actions.empty() && actions.back().kind == ActionKind::kCompute &&
        actions.back().phase == phase && actions.back().micro_batch == micro_batch_ &&
        actions.back().layer == layer_) {
      actions.back().seconds += seconds;
      return;
    }
    actions.push_back({ActionKind::kCompute, phase, micro_batch_, layer_, seconds, -1});
  }

  void post(int operation) {
    step_.program.cells[at(cell_)].push_back(
        {ActionKind::kPost, Phase::kOther, micro_batch_, layer_, 0, operation});
  }

  void wait(Phase phase, int operation) {
    step_.program.cells[at(cell_)].push_back(
        {ActionKind::kWait, phase, micro_batch_, layer_, 0, operation});
  }

  // A collective of this cell that runs while `overlapped` is computed.
  void tensor(const std::vector<Pattern>& patterns, Phase overlap_phase = Phase::kBackward,
              double overlapped = 0) {
    if (strategy_.tp == 1) {
      if (overlapped > 0) compute(overlap_phase, overlapped);
      return;
    }
    const int operation = new_operation(patterns[at(cell_)], Phase::kTpComm, 1, -1, micro_batch_);
    post(operation);
    if (overlapped > 0) compute(overlap_phase, overlapped);
    wait(Phase::kTpComm, operation);
  }

  void block_forward_pass(Phase phase) {
    const RankTimes& t = times_[at(cell_)];
    const bool again = phase == Phase::kRecompute;
    compute(phase, again ? t.attention_recompute : t.attention_forward);
    tensor(tensor_sums_);
    compute(phase, again ? t.mlp_recompute : t.mlp_forward);
    if (!again) tensor(tensor_sums_);
  }

  // With one tensor rank nothing interrupts a stage, so its blocks count as one piece.
  void enter_layer(int layer) { layer_ = strategy_.tp > 1 ? layer : -1; }

  void forward(int pp, int dp, int micro_batch) {
    const RankTimes& t = times_[at(cell_)];
    micro_batch_ = micro_batch;
    layer_ = -1;
    if (pp == 0) {
      compute(Phase::kForward, t.embedding_forward);
      tensor(tensor_sums_);
    } else {
      wait(Phase::kPpComm, transfer_of(activations_, pp - 1, dp, micro_batch));
      if (sliced_) tensor(tensor_gathers_);
    }
    const workload::LayerRange range = workload::stage_layers(model_, strategy_.pp, pp);
    for (int layer = range.first; layer < range.first + range.count; ++layer) {
      enter_layer(layer);
      block_forward_pass(Phase::kForward);
    }
    layer_ = -1;
    if (pp == strategy_.pp - 1) {
      compute(Phase::kForward, t.head_forward);
      tensor(loss_largest_);
      tensor(loss_sums_);
    } else {
      post(transfer_of(activations_, pp, dp, micro_batch));
    }
  }

  void block_backward_pass(const std::function<void(long long)>& ready) {
    const RankTimes& t = times_[at(cell_)];
    if (strategy_.recompute == workload::Recompute::kFull) block_forward_pass(Phase::kRecompute);
    compute(Phase::kBackward, t.mlp_backward);
    tensor(tensor_sums_, Phase::kBackward, t.mlp_overlapped);
    ready(layout_.mlp);
    compute(Phase::kBackward, t.attention_backward);
    tensor(tensor_sums_, Phase::kBackward, t.attention_overlapped);
    compute(Phase::kBackward, t.last_backward);
    ready(layout_.attention);
  }

  void backward(int pp, int dp, int micro_batch) {
    const RankTimes& t = times_[at(cell_)];
    micro_batch_ = micro_batch;
    layer_ = -1;
    long long final_elements = 0;
    std::size_t posted = 0;
    const auto ready = [&](long long elements) {
      if (!strategy_.overlap || micro_batch + 1 < micro_batches_) return;
      final_elements += elements;
      const auto& buckets = buckets_[at(pp)];
      while (posted < buckets.size() &&
             static_cast<long long>(posted + 1) * workload::kGradientBucketElements <=
                 final_elements)
        post(buckets[posted++]);
    };
    if (pp == strategy_.pp - 1) {
      compute(Phase::kBackward, t.head_backward);
      tensor(tensor_sums_, Phase::kBackward, t.head_overlapped);
      compute(Phase::kBackward, t.head_last);
      ready(layout_.head);
    } else {
      wait(Phase::kPpComm, transfer_of(gradients_, pp, dp, micro_batch));
      if (sliced_) tensor(tensor_gathers_);
    }
    const workload::LayerRange range = workload::stage_layers(model_, strategy_.pp, pp);
    for (int layer = range.first + range.count; layer-- > range.first;) {
      enter_layer(layer);
      block_backward_pass(ready);
    }
    layer_ = -1;
    if (pp == 0) {
      compute(Phase::kBackward, t.embedding_backward);
      ready(layout_.embedding);
    } else {
      post(transfer_of(gradients_, pp - 1, dp, micro_batch));
    }
    if (micro_batch + 1 == micro_batches_) {
      for (; posted < buckets_[at(pp)].size(); ++posted)
        post(buckets_[at(pp)][posted]);
    }
  }

  void make_cell(int pp, int dp) {
    cell_ = cell_of(pp, dp);
    const int warm_up = std::min(micro_batches_, strategy_.pp - pp - 1);
    for (int i = 0; i < warm_up; ++i)
      forward(pp, dp, i);
    for (int i = 0; i < micro_batches_; ++i) {
      if (i + warm_up < micro_batches_) forward(pp, dp, i + warm_up);
      backward(pp, dp, i);
    }
    micro_batch_ = -1;
    layer_ = -1;
    // The step ends when everything is sent.
    for (int i = 0; i < micro_batches_; ++i) {
      if (pp + 1 < strategy_.pp) wait(Phase::kPpComm, transfer_of(activations_, pp, dp, i));
      if (pp > 0) wait(Phase::kPpComm, transfer_of(gradients_, pp - 1, dp, i));
    }
    for (const int bucket : buckets_[at(pp)])
      wait(Phase::kDpComm, bucket);
    if (!ties_.empty() && (pp == 0 || pp == strategy_.pp - 1)) {
      post(ties_[at(dp)]);
      wait(Phase::kDpComm, ties_[at(dp)]);
    }
    if (norm_ >= 0) {
      post(norm_);
      // With stages it is the wait for the one that drains last.
      wait(strategy_.pp > 1 ? Phase::kBubble : Phase::kDpComm, norm_);
    }
    compute(Phase::kOptimizer, optimizer_times_[at(cell_)]);
  }

  const PlanContext& context_;
  const workload::ModelShape& model_;
  const workload::Strategy& strategy_;
  const std::vector<topo::DeviceRef>& placement_;
  const int micro_batches_;
  const GradientLayout layout_;
  double tokens_ = 0;
  double boundary_bytes_ = 0;
  bool sliced_ = false;  // each tensor rank carries its share of a boundary's rows

  BuiltStep step_;
  std::vector<RankTimes> times_;         // by cell
  std::vector<double> optimizer_times_;  // by cell
  std::vector<Pattern> tensor_sums_;     // by cell, empty when tp == 1
  std::vector<Pattern> tensor_gathers_;
  std::vector<Pattern> loss_largest_;
  std::vector<Pattern> loss_sums_;
  std::vector<int> activations_;  // operations by boundary, dp, micro-batch
  std::vector<int> gradients_;
  std::vector<std::vector<int>> buckets_;  // operations by stage
  std::vector<int> ties_;                  // by dp
  int norm_ = -1;
  int cell_ = 0;
  int micro_batch_ = -1;
  int layer_ = -1;
};

}  // namespace

Result<BuiltStep> build_step(const PlanContext& context, const workload::Strategy& strategy,
                             const std::vector<topo::DeviceRef>& placement) {
  REGATTA_TRY(count,
              workload::micro_batches(context.job.model, strategy, context.job.global_batch));
  REGATTA_CHECK(placement.size() == at(strategy.world_size()));
  return Builder(context, strategy, placement, count).build();
}

}  // namespace regatta::plan
