// plan/simulated_plan.h: predicts a (strategy, placement) on a cluster and searches all of them.
// Pure: the same job, cluster and rates give the same bytes.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "regatta/base/core/result.h"
#include "regatta/base/core/units.h"
#include "regatta/model/cost/memory.h"
#include "regatta/model/cost/rates.h"
#include "regatta/model/topo/cluster.h"
#include "regatta/model/topo/graph.h"
#include "regatta/model/workload/job.h"
#include "regatta/model/workload/timeline.h"

namespace regatta::plan {

using Placement = std::vector<topo::DeviceRef>;  // by rank

using MemoryUse = cost::MemoryUse;

struct LinkTraffic {
  topo::DirectedLink link;
  Bytes bytes;  // per step
};

struct Prediction {
  Seconds step_time;
  workload::PhaseTimes phases;  // mean over ranks; sums to step_time
  workload::Timeline timeline;  // every rank, one step
  MemoryUse memory;             // the worst rank
  Rank memory_rank;
  std::vector<LinkTraffic> traffic;  // links that carry something
};

struct SimulatedPlan {
  workload::Strategy strategy;
  Placement placement;
  // For messages: each axis and the worst path between its neighbours, "tp within servers, 1 of 3
  // stage boundaries crosses a leaf".
  std::string placement_name;
  Prediction prediction;
};

// Predicts one complete plan. Fails with kInvalidInput when the strategy does not divide the job or
// the placement does not fit the cluster (one device per rank, no device twice), or the rates lack
// a device type, the precision or a path class.
Result<Prediction> predict(const workload::Job& job, const topo::Cluster& cluster,
                           const cost::Rates& rates, const workload::Strategy& strategy,
                           const Placement& placement);

enum class RejectionReason { kDoesNotDivide, kMemory, kSlower };

// A strategy that was left out, and the reason: "tp 3 does not divide heads 8", "needs 5.1
// GiB of 4 GiB per device", "2.4x slower: dp_comm takes 71 % of the step" (its best placement).
struct RejectedStrategy {
  RejectionReason kind = RejectionReason::kSlower;
  workload::Strategy strategy;
  std::string placement_name;
  std::string reason;
  double excess = 0;  // kMemory: needed / available; kSlower: time / best time
};

struct SimulatedSearchResult {
  // Fastest first; every plan that fits, one per distinct prediction class.
  std::vector<SimulatedPlan> ranked;
  std::vector<RejectedStrategy> rejected;
  long long evaluated = 0;
};

// All (dp, tp, pp, micro_batch, recompute) that use every device and respect job.strategy, times
// the distinct placements (plan/internal/placement/placement_candidates.h), the best of which are
// improved by swapping devices. With job.placement: that placement alone. `devices`: those that are
// used; empty: all. Fails with kInvalidInput when nothing fits, naming the nearest plan.
Result<SimulatedSearchResult> search_simulated_plans(const workload::Job& job,
                                                     const topo::Cluster& cluster,
                                                     const cost::Rates& rates,
                                                     std::vector<topo::DeviceRef> devices = {});

// The placement that job.placement names ("s0/1", by rank). Fails with kInvalidInput when a name is
// no device of the cluster or comes twice.
Result<Placement> parse_placement(const std::vector<std::string>& names,
                                  const topo::Cluster& cluster);

// Pure data parallelism in rank order over all devices, with the largest micro-batch that fits:
// what `run --compare pure-dp` measures.
Result<SimulatedPlan> pure_data_parallel(const workload::Job& job, const topo::Cluster& cluster,
                                         const cost::Rates& rates);

// Up to `count` plans of different strategy, the best one first, then spread evenly over the
// logarithm of the predicted time (up to 3 times the best): for `run --sweep`.
std::vector<SimulatedPlan> sweep_selection(const SimulatedSearchResult& result, int count);

// Plans and predictions as JSON, for result.json and --json. Keys carry
// the unit.

// ["s0/0","s0/1",...] by rank.
nlohmann::json placement_to_json(const Placement& placement, const topo::Cluster& cluster);

// {"weights_bytes":...,"gradients_bytes":...,"total_bytes":...}
nlohmann::json memory_to_json(const MemoryUse& memory);

// [{"link":"s0.nic0-leaf0","forward":true,"bytes":...}]
nlohmann::json traffic_to_json(const std::vector<LinkTraffic>& traffic, const topo::Graph& graph);

// {"step_time_s":...,"phases":{...},"memory_per_device":{...},"memory_rank":3,"traffic":[...]}; the
// timeline is not in it (workload::timeline_to_json).
nlohmann::json prediction_to_json(const Prediction& prediction, const topo::Graph& graph);

// {"strategy":{...},"placement":[...],"placement_name":"...","predicted":{...}}
nlohmann::json plan_to_json(const SimulatedPlan& plan, const topo::Cluster& cluster,
                            const topo::Graph& graph);

// {"evaluated":...,"ranked":[the first `top` plans],"rejected":[{"strategy":...,"kind":"memory",
// "placement_name":...,"reason":...}]}
nlohmann::json search_to_json(const SimulatedSearchResult& result, const topo::Cluster& cluster,
                              int top);

std::string_view to_string(RejectionReason kind);  // "does_not_divide", "memory", "slower"

}  // namespace regatta::plan
