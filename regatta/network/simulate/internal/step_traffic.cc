#include "regatta/network/simulate/internal/step_traffic.h"

#include <cstddef>
#include <vector>

#include <fmt/format.h>

#include "regatta/model/pipeline/pipeline_order.h"
#include "regatta/network/fabric/traffic.h"

namespace regatta::simulate {
namespace {

using pipeline::Pass;
using pipeline::PassKind;

class StepBuilder {
 public:
  StepBuilder(ScenarioWorkload& workload, const SimulatedStep& shape, pipeline::PipelineOrder order)
      : workload_(workload), shape_(shape), order_(std::move(order)) {}

  void build() {
    last_of_.assign(size(shape_.pp) * size(shape_.dp), kNothing);
    for (int replica = 0; replica < shape_.dp; ++replica)
      add_pipeline(replica);
    for (int stage = 0; stage < shape_.pp; ++stage)
      add_gradients(stage);
  }

 private:
  static std::size_t size(int number) { return static_cast<std::size_t>(number); }
  std::uint32_t rank(int tensor, int replica, int stage) const {
    return static_cast<std::uint32_t>(tensor + shape_.tp * (replica + shape_.dp * stage));
  }
  std::size_t at(int stage, int micro_batch) const {
    return size(stage) * size(shape_.micro_batches) + size(micro_batch);
  }

  // Computation first, then what waits between the stages, for the orders of neighbours cross.
  void add_pipeline(int replica) {
    const std::size_t pieces = size(shape_.pp) * size(shape_.micro_batches);
    std::vector<std::uint32_t> forward(pieces);
    std::vector<std::uint32_t> backward(pieces);
    for (int stage = 0; stage < shape_.pp; ++stage) {
      std::uint32_t before = kNothing;
      for (const Pass& piece : order_[size(stage)]) {
        const bool is_forward = piece.kind == PassKind::kForward;
        const std::uint32_t one =
            workload_.add_pause(is_forward ? shape_.forward : shape_.backward);
        if (before != kNothing) workload_.traffic.depend(one, before);
        before = one;
        (is_forward ? forward : backward)[at(stage, piece.micro_batch)] = one;
      }
      last_of_[size(stage) * size(shape_.dp) + size(replica)] = before;
    }
    for (int stage = 0; stage + 1 < shape_.pp; ++stage) {
      for (int micro_batch = 0; micro_batch < shape_.micro_batches; ++micro_batch) {
        send(replica, stage, stage + 1, forward[at(stage, micro_batch)],
             forward[at(stage + 1, micro_batch)]);
        send(replica, stage + 1, stage, backward[at(stage + 1, micro_batch)],
             backward[at(stage, micro_batch)]);
      }
    }
  }

  // The ranks of a stage send to another stage after `computed`, before `next` computes.
  void send(int replica, int from, int to, std::uint32_t computed, std::uint32_t next) {
    for (int tensor = 0; tensor < shape_.tp; ++tensor) {
      const std::uint32_t pair =
          workload_.pair_or_fail(rank(tensor, replica, from), rank(tensor, replica, to));
      const std::uint32_t flow = workload_.traffic.add(pair, shape_.activations);
      workload_.traffic.depend(flow, computed);
      workload_.traffic.depend(next, flow);
    }
  }

  void add_gradients(int stage) {
    const std::uint32_t computed = workload_.add_pause({});
    for (int replica = 0; replica < shape_.dp; ++replica)
      workload_.traffic.depend(computed, last_of_[size(stage) * size(shape_.dp) + size(replica)]);
    const std::uint32_t end = workload_.add_pause(shape_.optimizer);
    workload_.traffic.depend(end, computed);
    for (int tensor = 0; tensor < shape_.tp && shape_.dp > 1; ++tensor) {
      if (shape_.aggregates)
        add_aggregated_ring(tensor, stage, computed, end);
      else
        add_ring(tensor, stage, computed, end);
    }
  }

  void add_aggregated_ring(int tensor, int stage, std::uint32_t computed, std::uint32_t end) {
    std::vector<std::uint32_t> pairs;
    for (int replica = 0; replica < shape_.dp; ++replica)
      pairs.push_back(workload_.pair_or_fail(rank(tensor, replica, stage),
                                             rank(tensor, (replica + 1) % shape_.dp, stage)));
    const auto ring = static_cast<std::uint32_t>(workload_.rings.size());
    workload_.rings.push_back(std::move(pairs));
    const long long chunk = shape_.gradients.value / shape_.dp;
    const std::uint32_t flow =
        workload_.traffic.add(kRingBit | ring, {2 * (shape_.dp - 1) * chunk});
    workload_.traffic.depend(flow, computed);
    workload_.traffic.depend(end, flow);
  }

  void add_ring(int tensor, int stage, std::uint32_t computed, std::uint32_t end) {
    const auto first = static_cast<std::uint32_t>(workload_.traffic.flows().size());
    const auto ranks = static_cast<std::uint32_t>(shape_.dp);
    fabric::add_ring_all_reduce(
        workload_.traffic, ranks, shape_.gradients, [&](std::uint32_t from, std::uint32_t to) {
          return workload_.pair_or_fail(rank(tensor, static_cast<int>(from), stage),
                                        rank(tensor, static_cast<int>(to), stage));
        });
    const auto last = static_cast<std::uint32_t>(workload_.traffic.flows().size());
    for (std::uint32_t i = 0; i < ranks; ++i) {
      workload_.traffic.depend(first + i, computed);
      workload_.traffic.depend(end, last - ranks + i);
    }
  }

  ScenarioWorkload& workload_;
  const SimulatedStep& shape_;
  const pipeline::PipelineOrder order_;
  std::vector<std::uint32_t> last_of_;  // computation of each stage and replica
};

}  // namespace

Status add_step(ScenarioWorkload& workload, const Scenario& scenario, const TrafficItem& item) {
  const SimulatedStep& shape = item.step;
  const long long ranks = 1LL * shape.tp * shape.pp * shape.dp;
  const auto there = static_cast<long long>(workload.network.devices.size());
  const auto wrong = [&](const std::string& what) {
    return Error{Code::kInvalidInput, fmt::format("{}:{}: {}", scenario.file, item.line, what)};
  };
  if (ranks > there) {
    return wrong(fmt::format("tp {} x pp {} x dp {} are {} ranks; the cluster has {} devices",
                             shape.tp, shape.pp, shape.dp, ranks, there));
  }
  const auto order =
      pipeline::pipeline_order({.stages = shape.pp, .micro_batches = shape.micro_batches});
  if (!order) return wrong(order.error().message);
  StepBuilder(workload, shape, *order).build();
  return {};
}

}  // namespace regatta::simulate
