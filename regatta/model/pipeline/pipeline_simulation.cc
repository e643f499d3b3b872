#include "regatta/model/pipeline/pipeline_simulation.h"

#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "regatta/base/core/ids.h"
#include "regatta/model/pipeline/internal/micro_batch_route.h"

namespace regatta::pipeline {
namespace {

bool is_forward(const Pass& pass) {
  return pass.kind == PassKind::kForward;
}

// The simulated step as it goes on.
class Engine {
 public:
  Engine(const PipelineShape& shape, const PipelineOrder& order, const PipelineTimes& times)
      : shape_(shape), order_(order), times_(times), chain_(shape), parts_(parts_of(shape)) {
    const auto stages = order.size();
    done_.assign(3 * stages * static_cast<std::size_t>(parts_ * shape.micro_batches), kNotYet);
    next_.assign(stages, 0);
    free_.assign(stages, 0);
    result_.busy.resize(stages);
    for (const auto& passes : order)
      result_.spans.emplace_back().reserve(passes.size());
  }

  Result<PipelineSimulation> run() {
    for (int stage = shape_.stages; stage-- > 0;)
      awake_.push_back(stage);
    while (!awake_.empty()) {
      const int stage = awake_.back();
      awake_.pop_back();
      while (take_next(stage)) {
      }
    }
    for (std::size_t stage = 0; stage < order_.size(); ++stage) {
      if (next_[stage] < order_[stage].size()) return deadlock(stage);
      result_.makespan = std::max(result_.makespan, Seconds{free_[stage]});
    }
    return std::move(result_);
  }

 private:
  static constexpr double kNotYet = -1;

  double& done(PassKind kind, RoutePosition at, int micro_batch) {
    // A whole backward does for those after it what an input gradient does.
    const int row = kind == PassKind::kForward ? 0 : kind == PassKind::kWeightGradient ? 2 : 1;
    const int cell = ((row * shape_.stages + at.stage) * parts_ + at.part) * shape_.micro_batches;
    return done_[as_index(cell + micro_batch)];
  }

  // When the message is there that the forward (or gradient) of `from` sends to `stage`; nothing
  // when it is not yet computed.
  std::optional<double> arrival(PassKind kind, RoutePosition from, int micro_batch, int stage) {
    const double end = done(kind, from, micro_batch);
    if (end == kNotYet) return std::nullopt;
    return end + message(from.stage, stage);
  }

  double message(int from, int to) const {
    if (from == to) return 0;
    const int low = std::min(from, to);
    const int edge = std::max(from, to) - low == 1 ? low : shape_.stages - 1;
    return times_.messages[as_index(edge)].value;
  }

  // The earliest start of a pass as far as others decide; nothing when one of them has not ended.
  std::optional<double> ready(int stage, const Pass& pass) {
    const RoutePosition here{stage, pass.part};
    if (pass.kind == PassKind::kWeightGradient)
      return arrival(PassKind::kInputGradient, here, pass.micro_batch, stage);
    if (!is_forward(pass) && done(PassKind::kForward, here, pass.micro_batch) == kNotYet)
      return std::nullopt;
    const auto from = is_forward(pass) ? chain_.before(here) : chain_.after(here);
    return from ? arrival(pass.kind, *from, pass.micro_batch, stage) : 0;
  }

  double duration(const Pass& pass, std::size_t stage) const {
    const PartTimes& part =
        times_
            .parts[stage * static_cast<std::size_t>(parts_) + static_cast<std::size_t>(pass.part)];
    switch (pass.kind) {
      case PassKind::kForward:
        return part.forward.value;
      case PassKind::kBackward:
        return (part.input_gradient + part.weight_gradient).value;
      case PassKind::kInputGradient:
        return part.input_gradient.value;
      case PassKind::kWeightGradient:
        return part.weight_gradient.value;
    }
    return 0;
  }

  // One pass of the stage, or the two that overlap; false when it has to wait or has ended.
  bool take_next(int stage) {
    const auto s = static_cast<std::size_t>(stage);
    const auto& passes = order_[s];
    if (next_[s] == passes.size()) return false;
    const std::size_t count = passes[next_[s]].overlaps_next ? 2 : 1;
    double start = free_[s];
    double took = 0;
    for (std::size_t i = next_[s]; i < next_[s] + count; ++i) {
      const auto at = ready(stage, passes[i]);
      if (!at) return false;
      start = std::max(start, *at);
      took += duration(passes[i], s);
    }
    if (count == 2) took *= times_.overlapped_share;
    free_[s] = start + took;
    result_.busy[s] += Seconds{took};
    for (std::size_t i = 0; i < count; ++i)
      end_piece(stage, passes[next_[s]++], {{start}, {start + took}});
    return true;
  }

  // Notes the pass's end and wakes the stage that may wait for it.
  void end_piece(int stage, const Pass& pass, PassInterval span) {
    const auto s = static_cast<std::size_t>(stage);
    const RoutePosition here{stage, pass.part};
    done(pass.kind, here, pass.micro_batch) = span.end.value;
    result_.spans[s].push_back(span);
    if (pass.kind == PassKind::kWeightGradient) return;
    const auto to = is_forward(pass) ? chain_.after(here) : chain_.before(here);
    if (!to || to->stage == stage) return;
    if (times_.is_blocking) free_[s] += message(stage, to->stage);
    awake_.push_back(to->stage);
  }

  Error deadlock(std::size_t stage) const {
    return {Code::kInvalidInput,
            fmt::format("order of stage {}: its pass {} waits for one that never ends; put what it "
                        "needs before it",
                        stage, next_[stage])};
  }

  const PipelineShape& shape_;
  const PipelineOrder& order_;
  const PipelineTimes& times_;
  MicroBatchRoute chain_;
  int parts_;
  std::vector<double> done_;       // end of each pass, or kNotYet
  std::vector<std::size_t> next_;  // pass of each stage
  std::vector<double> free_;       // when each stage is free again
  std::vector<int> awake_;         // stages that may go on
  PipelineSimulation result_;
};

Status check_sizes(const PipelineShape& shape, const PipelineOrder& order,
                   const PipelineTimes& times) {
  REGATTA_TRY_DO(check_shape(shape));
  const auto stages = static_cast<std::size_t>(shape.stages);
  const int parts = parts_of(shape);
  if (order.size() != stages || times.messages.size() != stages ||
      times.parts.size() != stages * static_cast<std::size_t>(parts)) {
    return Error{
        Code::kInvalidInput,
        fmt::format("pipeline of {} stages with {} parts each: order of {}, times of {} "
                    "parts and {} messages; give one for each",
                    stages, parts, order.size(), times.parts.size(), times.messages.size())};
  }
  for (const auto& passes : order) {
    if (!passes.empty() && passes.back().overlaps_next) {
      return Error{Code::kInvalidInput,
                   "order: the last pass of a stage overlaps the next; there is none"};
    }
    for (const Pass& pass : passes) {
      if (pass.part < 0 || pass.part >= parts || pass.micro_batch < 0 ||
          pass.micro_batch >= shape.micro_batches) {
        return Error{Code::kInvalidInput,
                     fmt::format("order: no micro-batch {} of part {}; there are {} of {} parts",
                                 pass.micro_batch, pass.part, shape.micro_batches, parts)};
      }
    }
  }
  return {};
}

}  // namespace

PipelineTimes equal_times(const PipelineShape& shape, const PartTimes& part, Seconds message) {
  const auto stages = static_cast<std::size_t>(shape.stages);
  return {.parts = std::vector(stages * static_cast<std::size_t>(parts_of(shape)), part),
          .messages = std::vector(stages, message)};
}

Result<PipelineSimulation> simulate_pipeline(const PipelineShape& shape, const PipelineOrder& order,
                                             const PipelineTimes& times) {
  REGATTA_TRY_DO(check_sizes(shape, order, times));
  return Engine(shape, order, times).run();
}

std::vector<double> peak_activations(const PipelineShape& shape, const PipelineOrder& order,
                                     const std::vector<double>& sizes) {
  std::vector<double> peaks;
  const auto parts = static_cast<std::size_t>(parts_of(shape));
  for (std::size_t stage = 0; stage < order.size(); ++stage) {
    double held = 0;
    double peak = 0;
    for (const Pass& pass : order[stage]) {
      const double size = sizes[stage * parts + static_cast<std::size_t>(pass.part)];
      if (is_forward(pass))
        peak = std::max(peak, held += size);
      else if (pass.kind != PassKind::kInputGradient)
        held -= size;
    }
    peaks.push_back(peak);
  }
  return peaks;
}

}  // namespace regatta::pipeline
