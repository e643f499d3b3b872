// plan/internal/estimate/heterogeneous_pipeline.h: the time of a 1F1B pipeline whose stages wait
// for their messages.
#pragma once

#include <vector>

#include "regatta/base/core/units.h"
#include "regatta/planning/plan/internal/estimate/heterogeneous_job.h"

namespace regatta::plan {

// The times of one micro-batch in one stage, each with its messages.
struct MicroBatchTime {
  Seconds forward;
  Seconds backward;

  Seconds total() const { return forward + backward; }
  friend bool operator==(const MicroBatchTime&, const MicroBatchTime&) = default;
  friend MicroBatchTime operator-(const MicroBatchTime& a, const MicroBatchTime& b) {
    return {a.forward - b.forward, a.backward - b.backward};
  }
  friend MicroBatchTime operator*(const MicroBatchTime& a, double k) {
    return {a.forward * k, a.backward * k};
  }
};

// The blocks of every stage.
std::vector<workload::BlockCounts> stage_block_counts(const workload::ModelShape& model,
                                                      const std::vector<int>& layers);

MicroBatchTime micro_batch_time(const HeterogeneousJob& job, int stage, int replica,
                                const workload::BlockCounts& blocks);

// The stages of a replica.
std::vector<MicroBatchTime> micro_batch_times(const HeterogeneousJob& job,
                                              const std::vector<workload::BlockCounts>& spans,
                                              int replica);

// From the first forward to the last backward: in closed form, or simulated for fewer micro-batches
// than stages (pipeline/uneven_stages.h).
Seconds pipeline_time(const std::vector<MicroBatchTime>& slots, int micro_batches);

}  // namespace regatta::plan
