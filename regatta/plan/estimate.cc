#include "regatta/plan/estimate.h"

#include <algorithm>
#include <iterator>
#include <string>

#include <fmt/format.h>

#include "regatta/cost/gpu_block.h"
#include "regatta/cost/gpu_network.h"

namespace regatta::plan {
namespace {

using cost::Collective;
using workload::Recompute;

constexpr double kElement = 2;  // bytes of an activation, and of a weight that replicas gather

// The host prepares backward kernels faster than forward ones: autograd runs them from C++.
constexpr double kBackwardLaunch = 0.6;

class Estimator {
 public:
  Estimator(const EstimateInput& input, const cost::MatrixEngine& engine, int micro_batches)
      : input_(input),
        strategy_(input.strategy),
        micro_batches_(micro_batches),
        engine_(engine),
        network_(cost::server_network(input.server, input.stack)),
        work_{.model = input.model,
              .samples = static_cast<double>(input.strategy.micro_batch),
              .tp = input.strategy.tp,
              .sequence_parallel = input.strategy.sequence_parallel} {}

  StepBreakdown step() {
    const double blocks = static_cast<double>(input_.model.layers) / strategy_.pp;
    StepBreakdown slot = block();
    slot *= blocks;
    slot.pp_comm = boundary() * strategy_.virtual_stages;
    const Seconds fill = slot.total() * (strategy_.pp - 1.0) / strategy_.virtual_stages;
    StepBreakdown step = slot;
    step += ends();
    step *= micro_batches_;
    step.bubble = fill;
    step.dp_comm = gradients();
    const double replicas = strategy_.zero > 0 ? strategy_.dp : 1;
    const double sums = input_.stack.traits.accumulated_bytes * parameters() * micro_batches_;
    step.optimizer = cost::gpu_optimizer_time(engine_, parameters() / replicas) +
                     Seconds{sums / engine_.memory.value};
    return step;
  }

 private:
  double tokens() const { return work_.samples * input_.model.seq; }

  // One block of one micro-batch, forward and backward.
  StepBreakdown block() const {
    const cost::BlockTime time = cost::gpu_block_time(engine_, input_.stack, work_);
    const Seconds sum = cost::hierarchical_all_reduce_time(
        network_, strategy_.tp, tokens() * input_.model.hidden * kElement);
    const bool is_full = strategy_.recompute == Recompute::kFull;
    StepBreakdown part;
    part.matmul = time.forward.matmul + time.backward.matmul;
    part.attention = time.forward.attention + time.backward.attention;
    part.passes = time.forward.passes + time.backward.passes;
    if (is_full) part.recompute = time.forward.total();
    if (strategy_.recompute == Recompute::kSelective) part.recompute = time.forward.attention;
    part.tp_comm = sum * (is_full ? 6.0 : 4.0);  // two in each pass over the block

    const cost::StackTraits& traits = input_.stack.traits;
    const Seconds launch = input_.stack.calibration.launch;
    const Seconds forward = time.forward.total() + sum * 2.0;
    const Seconds backward = time.backward.total() + part.recompute + sum * (is_full ? 4.0 : 2.0);
    const Seconds host_forward = launch * traits.kernels_forward;
    const Seconds host_backward =
        launch * traits.kernels_backward * kBackwardLaunch + (is_full ? host_forward : Seconds{});
    part.host =
        std::max(host_forward - forward, Seconds{}) + std::max(host_backward - backward, Seconds{});
    return part;
  }

  // Embedding, output layer and loss of one micro-batch.
  StepBreakdown ends() const {
    const cost::ComputeTime time = cost::gpu_ends_time(engine_, work_);
    StepBreakdown part;
    part.matmul = time.matmul;
    part.passes = time.passes;
    return part;
  }

  // The activations of a micro-batch to the next stage and their gradient back.
  Seconds boundary() const {
    if (strategy_.pp == 1) return {};
    const bool is_sliced = input_.stack.traits.slices_boundaries || strategy_.sequence_parallel;
    const double bytes = tokens() * input_.model.hidden * kElement / (is_sliced ? strategy_.tp : 1);
    const bool is_inside = strategy_.tp * strategy_.dp * 2 <= network_.devices;
    return cost::message_time(network_, is_inside, bytes) * 2.0;
  }

  // Of one rank, embedding included.
  double parameters() const {
    const workload::ModelShape& model = input_.model;
    const double blocks =
        static_cast<double>(layer_parameters(model)) * model.layers / strategy_.pp;
    const double table = static_cast<double>(model.vocab) * model.hidden;
    return (blocks + table) / strategy_.tp;
  }

  Seconds gradients() const {
    const int inside = std::max(1, std::min(strategy_.dp, network_.devices / strategy_.tp));
    const cost::RankGroup group{
        .ranks = strategy_.dp, .inside = inside, .rings = std::min(strategy_.tp, network_.devices)};
    const double bytes = parameters() * input_.stack.traits.gradient_bytes;
    Seconds time = collective_time(network_, group, Collective::kAllReduce, bytes);
    if (strategy_.zero > 0)
      time += collective_time(network_, group, Collective::kAllGather, parameters() * kElement);
    return time;
  }

  const EstimateInput& input_;
  const workload::Strategy& strategy_;
  int micro_batches_;
  cost::MatrixEngine engine_;
  cost::ServerNetwork network_;
  cost::RankWork work_;
};

Error unknown(const std::string& what) {
  return {Code::kUnsupported, what};
}

// Every part once, so that none is forgotten.
constexpr Seconds StepBreakdown::*kParts[] = {&StepBreakdown::matmul,  &StepBreakdown::attention,
                                              &StepBreakdown::passes,  &StepBreakdown::recompute,
                                              &StepBreakdown::host,    &StepBreakdown::tp_comm,
                                              &StepBreakdown::pp_comm, &StepBreakdown::dp_comm,
                                              &StepBreakdown::bubble,  &StepBreakdown::optimizer};
static_assert(sizeof(StepBreakdown) == sizeof(Seconds) * std::size(kParts));

}  // namespace

StepBreakdown& StepBreakdown::operator+=(const StepBreakdown& other) {
  for (const auto part : kParts)
    this->*part += other.*part;
  return *this;
}

StepBreakdown& StepBreakdown::operator*=(double factor) {
  for (const auto part : kParts)
    this->*part = this->*part * factor;
  return *this;
}

Seconds StepBreakdown::total() const {
  Seconds sum;
  for (const auto part : kParts)
    sum += this->*part;
  return sum;
}

Result<StepBreakdown> estimate_step(const EstimateInput& input) {
  const topo::DeviceType& device = input.server.device;
  REGATTA_TRY(count, workload::micro_batches(input.model, input.strategy, input.global_batch));
  if (has_experts(input.model) || has_latent_attention(input.model))
    return unknown(
        "the closed form does not know experts and latent attention yet; take a dense "
        "model");
  const cost::MatrixEngine engine = cost::matrix_engine(device, input.stack);
  if (engine.processors == 0 || engine.peak.value <= 0) {
    return unknown(
        fmt::format("device {}: its processors or its 16-bit peak are not known; add "
                    "processors and bf16_peak to its type",
                    device.name));
  }
  const workload::Strategy& strategy = input.strategy;
  if (strategy.virtual_stages > 1 && count % strategy.pp != 0) {
    return Error{Code::kInvalidInput,
                 fmt::format("pp {} does not divide the {} micro-batches, as interleaved stages "
                             "need; change micro_batch or virtual_stages",
                             strategy.pp, count)};
  }
  return Estimator(input, engine, count).step();
}

}  // namespace regatta::plan
