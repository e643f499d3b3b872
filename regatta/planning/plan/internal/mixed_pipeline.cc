#include "regatta/planning/plan/internal/mixed_pipeline.h"

#include "regatta/base/core/check.h"
#include "regatta/model/pipeline/uneven.h"

namespace regatta::plan {

std::vector<SpanOfBlocks> spans_of(const workload::ModelShape& model,
                                   const std::vector<int>& layers) {
  std::vector<SpanOfBlocks> spans;
  int first = 0;
  for (const int count : layers) {
    spans.push_back(span_of(model, first, count));
    first += count;
  }
  return spans;
}

PipelineSlot slot_of(const MixedJob& job, int stage, int replica, const SpanOfBlocks& blocks) {
  const SlotTime time = slot_time(job, job.tensor_group(stage, replica).work, stage, blocks);
  const Seconds messages = job.messages_of(stage, replica) / 2;
  return {.forward = time.forward + messages,
          .backward = time.all.total() - time.forward + messages};
}

std::vector<PipelineSlot> slots_of(const MixedJob& job, const std::vector<SpanOfBlocks>& spans,
                                   int replica) {
  std::vector<PipelineSlot> slots;
  slots.reserve(spans.size());
  for (int stage = 0; stage < job.strategy.pp; ++stage)
    slots.push_back(slot_of(job, stage, replica, spans[static_cast<std::size_t>(stage)]));
  return slots;
}

Seconds pipeline_time(const std::vector<PipelineSlot>& slots, int micro_batches) {
  if (slots.size() == 1) return slots.front().total() * micro_batches;
  const pipeline::Shape shape{.stages = static_cast<int>(slots.size()),
                              .micro_batches = micro_batches};
  pipeline::Times times;
  for (const PipelineSlot& slot : slots)
    times.parts.push_back({.forward = slot.forward, .input_gradient = slot.backward});
  times.messages.resize(slots.size());
  const auto closed = pipeline::makespan(shape, times);
  if (closed) return *closed;
  const auto order = pipeline::order_of(shape);
  REGATTA_CHECK(order.has_value());
  const auto simulation = pipeline::simulate(shape, *order, times);
  REGATTA_CHECK(simulation.has_value());
  return simulation->makespan;
}

}  // namespace regatta::plan
