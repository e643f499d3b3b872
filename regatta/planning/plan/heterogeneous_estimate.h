// plan/heterogeneous_estimate.h: a training step on servers of several device types and link
// speeds, in closed form: stages and replicas of different pace, each stage against the memory of
// its own devices. On equal servers and an even split it is plan/estimate.h. Ways through stages of
// different pace: pipeline/uneven.h.
//
// Ranks lie in rank order over the devices of the cluster, so servers of one type that follow each
// other make stages of one type. A tensor group goes at the pace of its slowest device, a message
// at that of the slower side, a ring at that of the slowest link on its way.
#pragma once

#include <string>
#include <vector>

#include "regatta/base/core/result.h"
#include "regatta/base/core/units.h"
#include "regatta/model/topo/cluster.h"
#include "regatta/planning/plan/estimate.h"

namespace regatta::plan {

// The references outlive the call. Of the strategy: 1F1B, without cp, ep, offload and ZeRO-3.
struct HeterogeneousInput {
  const workload::ModelShape& model;
  const workload::Strategy& strategy;
  int global_batch = 0;
  workload::Precision precision = workload::Precision::kBf16;
  const topo::Cluster& cluster;
  const cost::SoftwareStack& stack;
};

// How the work is spread where it need not be even.
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
  int worst_stage = 0;  // that fills its devices most

  const HeterogeneousStage& worst() const { return stages[static_cast<std::size_t>(worst_stage)]; }
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
