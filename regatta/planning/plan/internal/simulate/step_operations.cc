#include "regatta/planning/plan/internal/simulate/step_operations.h"

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "regatta/base/core/ids.h"
#include "regatta/model/cost/collective.h"
#include "regatta/model/cost/hierarchical_layout.h"
#include "regatta/model/cost/memory.h"

namespace regatta::plan {
namespace {

using workload::Phase;

constexpr long long kGradientBytes = 4;  // reduced in fp32 whatever the precision

class StepOperationsBuilder {
 public:
  StepOperationsBuilder(const StepShape& shape, BuiltStep& step) : shape_(shape), step_(step) {}

  Result<StepOperations> make() {
    REGATTA_TRY_DO(make_tensor_patterns());
    REGATTA_TRY_DO(make_boundaries());
    REGATTA_TRY_DO(make_buckets());
    REGATTA_TRY_DO(make_closing());
    return std::move(made_);
  }

 private:
  // Pattern of a set of flows that each carry `bytes` and of `steps` latencies; `count` of them
  // run in a step, for traffic.
  Result<OperationTemplate> pattern(const std::vector<DevicePair>& pairs,
                                    const cost::CollectiveCost& cost, double count) {
    REGATTA_TRY(flows, shape_.context.network.flows(pairs));
    for (const DevicePair& pair : pairs)
      step_.traffic.push_back({pair, cost.bytes * pair.share * count});
    step_.program.transfers.push_back({std::move(flows.loads), cost.bytes});
    return OperationTemplate{static_cast<int>(step_.program.transfers.size()) - 1,
                             flows.latency.value * cost.steps};
  }

  // The flows of an all-reduce over each of `groups`, as coll chooses them: in one ring, or between
  // servers and inside them.
  struct Reduction {
    std::vector<DevicePair> pairs;
    cost::CollectiveCost cost;
  };
  Reduction reduce_over(const std::vector<std::vector<topo::DeviceRef>>& groups, Bytes size) const {
    Reduction reduction{.pairs = {}, .cost = {.bytes = static_cast<double>(size.value)}};
    int& steps = reduction.cost.steps;
    for (const auto& group : groups) {
      cost::RankLocations sites;
      for (const topo::DeviceRef device : group) {
        sites.server.push_back(device.server.value);
        sites.rate.push_back(shape_.context.cluster.type_of(device.server).nic_rate);
      }
      const auto grid = cost::plan_hierarchical_layout(sites);
      if (size.value <= cost::kSmallMessageBytes || !grid) {
        const auto ring = cost::all_reduce_cost(size, static_cast<int>(group.size()));
        steps = std::max(steps, ring.steps);
        for (std::size_t i = 0; i < group.size(); ++i)
          reduction.pairs.push_back(
              {group[i], group[(i + 1) % group.size()], ring.bytes / reduction.cost.bytes});
        continue;
      }
      steps = std::max(steps, cost::hierarchical_steps(*grid));
      for (const cost::HierarchicalFlow& flow : cost::hierarchical_flows(*grid))
        reduction.pairs.push_back({at(group, flow.from), at(group, flow.to), flow.bytes});
    }
    return reduction;
  }

  std::vector<DevicePair> tensor_ring(int pp, int dp) const {
    std::vector<DevicePair> pairs;
    pairs.reserve(as_index(shape_.strategy.tp));
    for (int tp = 0; tp < shape_.strategy.tp; ++tp)
      pairs.push_back(
          {shape_.device(pp, dp, tp), shape_.device(pp, dp, (tp + 1) % shape_.strategy.tp)});
    return pairs;
  }

  // The all-reduces of every lockstep group: of [tokens, hidden], of the loss's [tokens] and [2,
  // tokens], and the gather that makes a received boundary whole.
  Status make_tensor_patterns() {
    if (shape_.strategy.tp == 1) return {};
    const Bytes whole{static_cast<long long>(shape_.boundary_bytes)};
    const bool recompute = shape_.strategy.recompute == workload::Recompute::kFull;
    for (int pp = 0; pp < shape_.strategy.pp; ++pp) {
      const int layers = workload::stage_layers(shape_.model, shape_.strategy, pp).count;
      const double ends = (pp == 0 ? 1 : 0) + (pp == shape_.strategy.pp - 1 ? 1 : 0);
      const double count = shape_.micro_batches * (layers * (recompute ? 5.0 : 4.0) + ends);
      const double gathers = shape_.is_sliced ? shape_.micro_batches * (2 - ends) : 0;
      for (int dp = 0; dp < shape_.strategy.dp; ++dp) {
        const auto ring = tensor_ring(pp, dp);
        std::vector<topo::DeviceRef> group;
        for (const DevicePair& pair : ring)
          group.push_back(pair.from);
        const auto all_reduce = [&](Bytes size, double times) {
          const auto reduction = reduce_over({group}, size);
          return pattern(reduction.pairs, reduction.cost, times);
        };
        REGATTA_TRY(sum, all_reduce(whole, count));
        made_.tensor_sums.push_back(sum);
        REGATTA_TRY(gather,
                    pattern(ring, cost::reduce_scatter_cost(whole, shape_.strategy.tp), gathers));
        made_.tensor_gathers.push_back(gather);
        const Bytes row{static_cast<long long>(4 * shape_.tokens)};
        const double losses = pp == shape_.strategy.pp - 1 ? shape_.micro_batches : 0;
        REGATTA_TRY(largest, all_reduce(row, losses));
        made_.loss_largest.push_back(largest);
        REGATTA_TRY(sums, all_reduce(row * 2.0, losses));
        made_.loss_sums.push_back(sums);
      }
    }
    return {};
  }

  // Transfers between stages: each rank sends its share of the rows to its twin.
  Status make_boundaries() {
    for (int boundary = 0; boundary + 1 < shape_.strategy.pp; ++boundary) {
      for (int dp = 0; dp < shape_.strategy.dp; ++dp) {
        REGATTA_TRY_DO(make_boundary({.dp = dp, .pp = boundary}, true));
        REGATTA_TRY_DO(make_boundary({.dp = dp, .pp = boundary}, false));
      }
    }
    return {};
  }

  // One replica's transfers between stage `lower.pp` and the next: up carries activations.
  Status make_boundary(const workload::RankCoordinates& lower, bool up) {
    std::vector<DevicePair> pairs;
    pairs.reserve(as_index(shape_.strategy.tp));
    for (int tp = 0; tp < shape_.strategy.tp; ++tp) {
      const topo::DeviceRef below = shape_.device(lower.pp, lower.dp, tp);
      const topo::DeviceRef above = shape_.device(lower.pp + 1, lower.dp, tp);
      pairs.push_back(up ? DevicePair{below, above} : DevicePair{above, below});
    }
    const double bytes =
        shape_.is_sliced ? shape_.boundary_bytes / shape_.strategy.tp : shape_.boundary_bytes;
    REGATTA_TRY(one, pattern(pairs, {1, bytes}, shape_.micro_batches));
    const int channel = step_.program.channels++;
    auto& list = up ? made_.activations : made_.gradients;
    for (int i = 0; i < shape_.micro_batches; ++i)
      list.push_back(add_operation(
          step_.program, one, {.channel = channel, .phase = Phase::kPpComm, .micro_batch = i}));
    return {};
  }

  // The gradient buckets of each stage: reduced over the replicas of each tensor rank.
  Status make_buckets() {
    made_.buckets.resize(as_index(shape_.strategy.pp));
    if (shape_.strategy.dp == 1) return {};
    for (int pp = 0; pp < shape_.strategy.pp; ++pp) {
      std::vector<std::vector<topo::DeviceRef>> groups(as_index(shape_.strategy.tp));
      for (int tp = 0; tp < shape_.strategy.tp; ++tp) {
        for (int dp = 0; dp < shape_.strategy.dp; ++dp)
          at(groups, tp).push_back(shape_.device(pp, dp, tp));
      }
      const int channel = step_.program.channels++;
      const long long total = cost::rank_parameters(shape_.model, shape_.strategy, pp);
      const long long full = total / workload::kGradientBucketElements;
      const auto bucket_pattern = [&](long long elements, double count) {
        const auto reduction = reduce_over(groups, Bytes{kGradientBytes * elements});
        return pattern(reduction.pairs, reduction.cost, count);
      };
      if (full > 0) {
        REGATTA_TRY(one,
                    bucket_pattern(workload::kGradientBucketElements, static_cast<double>(full)));
        for (long long i = 0; i < full; ++i)
          at(made_.buckets, pp)
              .push_back(add_operation(
                  step_.program, one,
                  {.members = shape_.strategy.dp, .channel = channel, .phase = Phase::kDpComm}));
      }
      if (total % workload::kGradientBucketElements > 0) {
        REGATTA_TRY(rest, bucket_pattern(total % workload::kGradientBucketElements, 1));
        at(made_.buckets, pp)
            .push_back(add_operation(
                step_.program, rest,
                {.members = shape_.strategy.dp, .channel = channel, .phase = Phase::kDpComm}));
      }
    }
    return {};
  }

  // The end of the step: the tied table's gradient between the first and the last stage, and the
  // gradient norm over all ranks.
  Status make_closing() {
    if (shape_.model.tied_embeddings && shape_.strategy.pp > 1) {
      const Bytes table{kGradientBytes * shape_.model.hidden * shape_.model.vocab /
                        shape_.strategy.tp};
      for (int dp = 0; dp < shape_.strategy.dp; ++dp) {
        std::vector<DevicePair> pairs;
        for (int tp = 0; tp < shape_.strategy.tp; ++tp) {
          const topo::DeviceRef first = shape_.device(0, dp, tp);
          const topo::DeviceRef last = shape_.device(shape_.strategy.pp - 1, dp, tp);
          pairs.push_back({first, last});
          pairs.push_back({last, first});
        }
        REGATTA_TRY(one, pattern(pairs, cost::all_reduce_cost(table, 2), 1));
        made_.ties.push_back(
            add_operation(step_.program, one, {.members = 2, .phase = Phase::kDpComm}));
      }
    }
    const int ranks = shape_.strategy.world_size();
    if (ranks == 1) return {};
    std::vector<DevicePair> pairs;
    pairs.reserve(as_index(ranks));
    for (int rank = 0; rank < ranks; ++rank)
      pairs.push_back({at(shape_.placement, rank), at(shape_.placement, (rank + 1) % ranks)});
    const cost::CollectiveCost norm = cost::all_reduce_cost(Bytes{8}, ranks);
    REGATTA_TRY(flows, shape_.context.network.flows(pairs));
    made_.norm = add_operation(
        step_.program, {.latency = flows.latency.value * norm.steps},
        {.members = shape_.strategy.pp * shape_.strategy.dp, .phase = Phase::kDpComm});
    return {};
  }

  const StepShape shape_;
  BuiltStep& step_;
  StepOperations made_;
};

}  // namespace

StepShape::StepShape(const PlanContext& plan_context, const workload::Strategy& chosen,
                     const std::vector<topo::DeviceRef>& devices, int count)
    : context(plan_context),
      model(plan_context.job.model),
      strategy(chosen),
      placement(devices),
      micro_batches(count),
      tokens(static_cast<double>(chosen.micro_batch) * model.seq),
      boundary_bytes(workload::bytes_per_element(plan_context.job.precision) * tokens *
                     model.hidden),
      is_sliced(static_cast<long long>(tokens) % chosen.tp == 0) {}

int add_operation(StepProgram& program, const OperationTemplate& pattern,
                  const CommOperation& like) {
  program.operations.push_back(like);
  program.operations.back().transfer = pattern.transfer;
  program.operations.back().latency += pattern.latency;
  return static_cast<int>(program.operations.size()) - 1;
}

Result<StepOperations> make_operations(const StepShape& shape, BuiltStep& step) {
  return StepOperationsBuilder(shape, step).make();
}

}  // namespace regatta::plan
