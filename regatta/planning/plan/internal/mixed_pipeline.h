// plan/internal/mixed_pipeline.h: the time of a 1F1B pipeline whose stages wait for their messages.
#pragma once

#include <vector>

#include "regatta/base/core/units.h"
#include "regatta/planning/plan/internal/mixed_job.h"

namespace regatta::plan {

// Of one micro-batch in one stage, each with its messages.
struct PipelineSlot {
  Seconds forward;
  Seconds backward;

  Seconds total() const { return forward + backward; }
  friend bool operator==(const PipelineSlot&, const PipelineSlot&) = default;
  friend PipelineSlot operator-(const PipelineSlot& a, const PipelineSlot& b) {
    return {a.forward - b.forward, a.backward - b.backward};
  }
  friend PipelineSlot operator*(const PipelineSlot& a, double k) {
    return {a.forward * k, a.backward * k};
  }
};

// The blocks of every stage.
std::vector<SpanOfBlocks> spans_of(const workload::ModelShape& model,
                                   const std::vector<int>& layers);

PipelineSlot slot_of(const MixedJob& job, int stage, int replica, const SpanOfBlocks& blocks);

// The stages of a replica.
std::vector<PipelineSlot> slots_of(const MixedJob& job, const std::vector<SpanOfBlocks>& spans,
                                   int replica);

// From the first forward to the last backward: in closed form, or simulated for fewer micro-batches
// than stages (pipeline/uneven.h).
Seconds pipeline_time(const std::vector<PipelineSlot>& slots, int micro_batches);

}  // namespace regatta::plan
