#include "regatta/planning/plan/internal/simulate/simulated_timeline.h"

#include <algorithm>
#include <utility>

#include "regatta/base/core/ids.h"
#include "regatta/model/pipeline/closed_form.h"

namespace regatta::plan {
namespace {

using workload::Phase;

// Joins the spans of a rank that belong to one pass of a micro-batch.
class RowBuilder {
 public:
  std::vector<StageSpan> run(std::vector<workload::Span> spans) {
    std::stable_sort(spans.begin(), spans.end(),
                     [](const auto& a, const auto& b) { return a.start < b.start; });
    for (const workload::Span& span : spans)
      add(span);
    return std::move(row_);
  }

 private:
  void add(const workload::Span& span) {
    switch (span.phase) {
      case Phase::kForward:
        return extend(StageWork::kForward, span);
      case Phase::kBackward:
        return extend(StageWork::kBackward, span);
      case Phase::kRecompute:
        extend(StageWork::kBackward, span);
        row_.back().recompute += span.duration;
        return;
      case Phase::kTpComm:
        if (is_open(span)) row_.back().end = span.start + span.duration;
        return;
      case Phase::kPpComm:
        message_ = span;
        return;
      case Phase::kDpComm:
        return extend(StageWork::kReduction, span);
      case Phase::kOptimizer:
        return extend(StageWork::kOptimizer, span);
      case Phase::kBubble:
      case Phase::kOther:
        return;
    }
  }

  bool is_open(const workload::Span& span) const {
    return !row_.empty() && row_.back().micro_batch == span.micro_batch;
  }

  void extend(StageWork work, const workload::Span& span) {
    if (is_open(span) && row_.back().work == work) {
      row_.back().end = span.start + span.duration;
      return;
    }
    StageSpan next{.work = work,
                   .micro_batch = span.micro_batch,
                   .start = span.start,
                   .end = span.start + span.duration,
                   .message = {},
                   .recompute = {}};
    // The message that a pass waited for ends where it begins.
    if (message_.duration > Seconds{} && span.micro_batch >= 0) {
      next.start = message_.start;
      next.message = message_.duration;
    }
    message_ = {};
    row_.push_back(next);
  }

  std::vector<StageSpan> row_;
  workload::Span message_;
};

// Activations of a micro-batch from the start of its forward to the end of its backward.
MemoryCurve memory_curve(const std::vector<StageSpan>& row, const cost::GpuMemory& memory,
                         int in_flight) {
  const double each = memory.activations / std::max(1, in_flight);
  const double always = memory.total() - memory.activations;
  std::vector<std::pair<Seconds, int>> changes;
  for (const StageSpan& span : row) {
    if (span.work == StageWork::kForward) changes.emplace_back(span.start, 1);
    if (span.work == StageWork::kBackward) changes.emplace_back(span.end, -1);
  }
  std::stable_sort(changes.begin(), changes.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  MemoryCurve curve{{Seconds{}, always}};
  int held = 0;
  for (const auto& [when, change] : changes) {
    held += change;
    curve.push_back({when, always + each * held});
  }
  return curve;
}

Seconds last_end(const std::vector<StageSpan>& row, StageWork work) {
  Seconds last;
  for (const StageSpan& span : row)
    if (span.work == work) last = std::max(last, span.end);
  return last;
}

}  // namespace

StageTimeline simulated_timeline(const SimulatedPlan& plan, int micro_batches,
                                 const Estimate& estimate,
                                 const std::vector<cost::GpuMemory>& memories) {
  StageTimeline timeline{.schedule = plan.strategy.schedule,
                         .micro_batches = micro_batches,
                         .rows = {},
                         .pipeline_end = {},
                         .makespan = plan.prediction.step_time,
                         .has_equal_stages = false,
                         .memory = {},
                         .estimate = estimate};
  const int stages = plan.strategy.pp;
  std::vector<std::vector<workload::Span>> spans(static_cast<std::size_t>(stages));
  for (const workload::Span& span : plan.prediction.timeline) {
    const int stage = span.rank.value / plan.strategy.stage_ranks();
    const bool is_first = span.rank.value % plan.strategy.stage_ranks() == 0;
    if (is_first && !span.background) at(spans, stage).push_back(span);
  }
  for (int stage = 0; stage < stages; ++stage) {
    timeline.rows.push_back(RowBuilder().run(std::move(at(spans, stage))));
    timeline.pipeline_end =
        std::max(timeline.pipeline_end, last_end(timeline.rows.back(), StageWork::kBackward));
    const pipeline::PipelineShape shape{.stages = stages, .micro_batches = micro_batches};
    timeline.memory.push_back(memory_curve(timeline.rows.back(), at(memories, stage),
                                           pipeline::peak_activations(shape, stage)));
  }
  return timeline;
}

}  // namespace regatta::plan
