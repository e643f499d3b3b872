// plan/internal/search/layer_balance.h: blocks over the stages of a 1F1B pipeline whose stages
// differ in pace and memory, so that a step takes least.
//
// Before its first backward a micro-batch has passed the stages before x, and stage x works on all
// of them: a step takes at least P(x) + m X_x for every stage x, with P(x) the sum of X before it.
// The least of the largest of these over all partitions is found exactly: for a bound on it, the
// partitions of the first j blocks over the first s stages that keep to it are ruled by that with
// the least P, which is a shortest path over stages and blocks; the bound is halved in. The
// pipeline may take longer than that (pipeline/uneven_stages.h): blocks are moved, one between two
// stages, as long as that saves time. Where it then takes as long, the partition is optimal; else
// what the bound does not rule out is tried one by one.
#pragma once

#include <optional>
#include <vector>

#include "regatta/base/core/units.h"
#include "regatta/planning/plan/internal/estimate/heterogeneous_pipeline.h"

namespace regatta::plan {

// The time and the memory of a stage: a fixed part, and one for each block of either kind.
struct BalanceStage {
  MicroBatchTime fixed;
  MicroBatchTime dense;
  MicroBatchTime expert;
  double fixed_memory = 0;  // bytes
  double dense_memory = 0;
  double expert_memory = 0;
  double capacity = 0;

  MicroBatchTime slot(const workload::BlockCounts& blocks) const;
  bool fits(const workload::BlockCounts& blocks) const;
};

struct BalanceInput {
  std::vector<BalanceStage> stages;
  int dense = 0;  // blocks, the first of the model
  int expert = 0;
  int micro_batches = 1;
};

struct LayerBalance {
  std::vector<int> layers;  // of each stage, from 1
  Seconds time;             // of the pipeline: pipeline_time()
  Seconds bound;            // no partition takes less
  bool is_proven = false;   // nor less than `time`
};

// How many splits of a pipeline to time, each some p^3 operations, for a fraction of a second.
int move_budget(int stages);

// Tries at most `max_tries` partitions, or beginnings of them, beyond the first, with 0 not even
// moves. Nothing where no partition fits.
std::optional<LayerBalance> balance_layers(const BalanceInput& input, int max_tries);

}  // namespace regatta::plan
