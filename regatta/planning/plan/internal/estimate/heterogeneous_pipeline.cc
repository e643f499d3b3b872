#include "regatta/planning/plan/internal/estimate/heterogeneous_pipeline.h"

#include "regatta/base/core/ids.h"
#include "regatta/base/core/result.h"
#include "regatta/model/pipeline/uneven_stages.h"

namespace regatta::plan {

std::vector<workload::BlockCounts> stage_block_counts(const workload::ModelShape& model,
                                                      const std::vector<int>& layers) {
  std::vector<workload::BlockCounts> spans;
  int first = 0;
  for (const int count : layers) {
    spans.push_back(block_counts(model, first, count));
    first += count;
  }
  return spans;
}

MicroBatchTime micro_batch_time(const HeterogeneousJob& job, int stage, int replica,
                                const workload::BlockCounts& blocks) {
  const StageTime time =
      micro_batch_breakdown(job, job.tensor_group(stage, replica).work, stage, blocks);
  const Seconds messages = job.messages_of(stage, replica, time.all.matmul) / 2;
  return {.forward = time.forward + messages,
          .backward = time.all.total() - time.forward + messages};
}

std::vector<MicroBatchTime> micro_batch_times(const HeterogeneousJob& job,
                                              const std::vector<workload::BlockCounts>& spans,
                                              int replica) {
  std::vector<MicroBatchTime> slots;
  slots.reserve(spans.size());
  for (int stage = 0; stage < job.strategy.pp; ++stage)
    slots.push_back(micro_batch_time(job, stage, replica, at(spans, stage)));
  return slots;
}

Seconds pipeline_time(const std::vector<MicroBatchTime>& slots, int micro_batches) {
  if (slots.size() == 1) return slots.front().total() * micro_batches;
  const pipeline::PipelineShape shape{.stages = static_cast<int>(slots.size()),
                                      .micro_batches = micro_batches};
  pipeline::PipelineTimes times;
  for (const MicroBatchTime& slot : slots)
    times.parts.push_back({.forward = slot.forward, .input_gradient = slot.backward});
  times.messages.resize(slots.size());
  const auto closed = pipeline::makespan(shape, times);
  if (closed) return *closed;
  const auto order = pipeline::pipeline_order(shape);
  REGATTA_CHECK(order.has_value());
  const auto simulation = pipeline::simulate_pipeline(shape, *order, times);
  REGATTA_CHECK(simulation.has_value());
  return simulation->makespan;
}

}  // namespace regatta::plan
