// plan/heterogeneous_search.h: every strategy of a job on a cluster of several types of servers,
// each with its best split (plan/internal/search/heterogeneous_split.h) and its best order of
// servers: servers of a type together, in any order of the types, so that stages differ; or every
// type spread evenly over the stages, so that replicas do.
#pragma once

#include <string>
#include <vector>

#include "regatta/base/core/ids.h"
#include "regatta/base/core/result.h"
#include "regatta/base/core/units.h"
#include "regatta/model/topo/cluster.h"
#include "regatta/planning/plan/estimate.h"
#include "regatta/planning/plan/estimated_plan_metrics.h"
#include "regatta/planning/plan/estimated_plan_search.h"

namespace regatta::plan {

// A training step on servers of several device types and link
// speeds, in closed form: stages and replicas of different pace, each stage against the memory of
// its own devices. On equal servers and an even split it is plan/estimate.h. Paths through stages
// of different speed: pipeline/uneven_stages.h.
//
// Ranks lie in rank order over the devices of the cluster, so servers of one type that follow each
// other make stages of one type. A tensor group has the speed of its slowest device, a message that
// of the slower side, a ring that of the slowest link on its path.

// The references outlive the call. The strategy has 1F1B, and no cp, ep, etp, offload or ZeRO-3.
struct HeterogeneousInput {
  const workload::ModelShape& model;
  const workload::Strategy& strategy;
  int global_batch = 0;
  workload::Precision precision = workload::Precision::kBf16;
  const topo::Cluster& cluster;
  const cost::SoftwareStack& stack;
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
  int worst_stage = 0;  // that fills its devices most

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

// The references outlive the search.
struct HeterogeneousProblem {
  const workload::ModelShape& model;
  int global_batch = 0;
  workload::Precision precision = workload::Precision::kBf16;
  const workload::StrategyRequest& request;
  const topo::Cluster& cluster;  // all devices are used
  const cost::SoftwareStack& stack;
};

struct HeterogeneousPlan {
  EstimatedPlan plan;
  HeterogeneousSplit split;
  std::vector<ServerId> servers;  // in rank order
  Bytes capacity;                 // of the smallest device of the worst stage
};

struct HeterogeneousSearchResult {
  std::vector<HeterogeneousPlan> ranked;  // that fit, fastest first
  long long points = 0;                   // strategies and orders of servers
  long long evaluated = 0;                // of them: split and estimated
};

// The `top` fastest plans. A strategy whose lower bound is slower than these is left out before it
// is split: every block of every micro-batch takes some tensor group its time, and the largest
// share of a replica of m micro-batches takes p stages at least 1 / (1 - (1 - 1/m)^p) of one alone.
// Fails with kInvalidInput where no strategy divides the job or none fits, and with kUnsupported
// where the request or a device is not one that plan/heterogeneous_search.h knows.
Result<HeterogeneousSearchResult> search_heterogeneous_plans(const HeterogeneousProblem& problem,
                                                             int top);

// `cluster` with its servers in this order.
topo::Cluster reordered(const topo::Cluster& cluster, const std::vector<ServerId>& servers);

// Metrics of a plan on servers of several types beside its times; plan/estimated_plan_metrics.h has
// those for equal servers.

struct HeterogeneousPlanMetrics {
  int devices = 0;
  FlopsPerSecond per_device;           // operations of the model, the mean of all devices
  FlopsPerSecond hardware_per_device;  // with what is computed again
  double mfu = 0;                      // of the sum of the devices' peaks in the precision
  double tokens_per_s = 0;
  MemoryFit fit = MemoryFit::kFits;
  PredictionInterval
      interval;  // 80 % of steps like it are in between, as the stack's replayed rows are
};

// Requires that `plan` is one of the problem.
HeterogeneousPlanMetrics plan_metrics(const HeterogeneousProblem& problem,
                                      const HeterogeneousPlan& plan);

}  // namespace regatta::plan
