// plan/internal/estimate/heterogeneous_estimate.h: a training step on servers of several device
// types and link speeds, in closed form: stages and replicas of different pace, each stage against
// the memory of its own devices. On equal servers and an even split it is plan/estimate.h. Paths
// through stages of different speed: pipeline/uneven_stages.h.
//
// Ranks lie in rank order over the devices of the cluster, so servers of one type that follow each
// other make stages of one type. Ranks that wait for each other in every layer (of tp, cp and ep)
// have the speed of their slowest device, a message that of the slower side, a ring that of the
// slowest link on its path.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "regatta/base/core/result.h"
#include "regatta/base/core/units.h"
#include "regatta/model/topo/cluster.h"
#include "regatta/planning/plan/estimate.h"

namespace regatta::plan {

// The references outlive the call. The strategy has 1F1B; its stage_layers are ignored.
struct HeterogeneousInput {
  const workload::ModelShape& model;
  const workload::Strategy& strategy;
  int global_batch = 0;
  workload::Precision precision = workload::Precision::kBf16;
  const topo::Cluster& cluster;
  const cost::SoftwareStack& stack;
  bool even_replicas = false;                      // each takes as many micro-batches as the others
  std::function<void(MachineModel&)> change = {};  // made on every group; empty: none
};

// The split of the work, which need not be even.
struct HeterogeneousSplit {
  std::vector<int> layers;         // blocks of each stage, from 0
  std::vector<int> micro_batches;  // of each replica, from 1

  friend bool operator==(const HeterogeneousSplit&, const HeterogeneousSplit&) = default;
};

struct HeterogeneousStage {
  int layers = 0;
  std::string device;  // the slowest of its types
  Seconds slot;        // of a micro-batch with its messages, on the slowest replica
  cost::GpuMemory memory;
  Bytes capacity;  // of the smallest of its devices
};

struct HeterogeneousEstimate {
  StepBreakdown step;
  std::vector<HeterogeneousStage> stages;
  int worst_stage = 0;      // that fills its devices most
  int slowest_replica = 0;  // whose last gradient comes last

  const HeterogeneousStage& worst() const { return at(stages, worst_stage); }
};

// The split of equal servers: workload::stage_layers, and micro-batches as even as can be, the
// remainder to the first replicas.
HeterogeneousSplit even_split(const HeterogeneousInput& input);

// Fails with kInvalidInput where the strategy does not divide the job, does not fill the cluster,
// or the split is not one of its layers and micro-batches; with kUnsupported for a strategy or a
// device that this closed form does not know.
Result<HeterogeneousEstimate> estimate_heterogeneous(const HeterogeneousInput& input,
                                                     const HeterogeneousSplit& split);

}  // namespace regatta::plan
