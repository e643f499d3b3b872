// plan/internal/search/heterogeneous_split.h: the split of a job over mixed servers that makes its
// step shortest, as far as every stage fits its devices: layers over stages
// (plan/internal/search/layer_balance.h), micro-batches over replicas.
#pragma once

#include <optional>
#include <vector>

#include "regatta/planning/plan/internal/estimate/heterogeneous_job.h"
#include "regatta/planning/plan/internal/estimate/heterogeneous_pipeline.h"

namespace regatta::plan {

// Replicas that take the same times.
struct ReplicaClass {
  std::vector<MicroBatchTime> slots;  // by stage
  std::vector<int> replicas;
};

// The share of each replica, at least one, of `count` micro-batches, so that the slowest replica
// ends soonest. Equal replicas get even shares.
std::vector<int> micro_batch_shares(const std::vector<ReplicaClass>& classes, int count);

// Whether every stage fits its devices.
bool fits_devices(const HeterogeneousJob& job, const HeterogeneousSplit& split);

// Layers and micro-batches by turns, each best for the other; then, with `is_thorough`, single
// layers moved as long as the whole step gets shorter. Nothing where no split fits.
std::optional<HeterogeneousSplit> best_split(const HeterogeneousJob& job, bool is_thorough);

}  // namespace regatta::plan
