// plan/heterogeneous_search.h: every strategy of a job on a cluster of several types of servers,
// each with the split that suits it (plan/internal/heterogeneous_split.h) and in the order of
// servers that suits it: servers of a type together, in any order of the types, so that stages
// differ; or every type spread evenly over the stages, so that replicas do.
#pragma once

#include <vector>

#include "regatta/base/core/result.h"
#include "regatta/planning/plan/estimated_plan_search.h"
#include "regatta/planning/plan/heterogeneous_estimate.h"

namespace regatta::plan {

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

// The `top` fastest. What shows itself slower than these before it is split is left out: every
// block of every micro-batch takes some tensor group its time, and the largest share of a replica
// of m micro-batches takes p stages at least 1 / (1 - (1 - 1/m)^p) of one alone. Fails with
// kInvalidInput where no strategy divides the job or none fits, and with kUnsupported where the
// request or a device is not one that plan/heterogeneous_estimate.h knows.
Result<HeterogeneousSearchResult> search_heterogeneous_plans(const HeterogeneousProblem& problem,
                                                             int top);

// `cluster` with its servers in this order.
topo::Cluster reordered(const topo::Cluster& cluster, const std::vector<ServerId>& servers);

}  // namespace regatta::plan
