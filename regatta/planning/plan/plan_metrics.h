// plan/plan_metrics.h: metrics of plans, the differences between two, their costs, the sizes of a
// cluster for a job; as JSON.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "regatta/base/core/result.h"
#include "regatta/base/core/units.h"
#include "regatta/planning/plan/plan_search.h"

namespace regatta::plan {

// The resources that a plan uses for a number of tokens: time, devices, energy, money.

struct ResourceUsage {
  Seconds time;
  double device_hours = 0;
  double kilowatt_hours = 0;  // of the servers under load; 0: theirs is not known
  double cost = 0;            // in the currency of the price
};

// For a step of duration `step` on all devices of the problem; `price` is per device and hour.
ResourceUsage resource_usage(const PlanningProblem& problem, Seconds step, double tokens,
                             double price);

// Applies one change to a cluster, "nic_rate=800Gbps": nic_rate, nics and server (a preset) change
// all types of its servers; servers, where they are of one type, and uplink the cluster.
// kInvalidInput begins with the change; also where the rails do not divide the NICs.
Result<topo::Cluster> changed_cluster(topo::Cluster cluster, const std::string& change);

// Tokens of one step of the whole cluster.
double tokens_per_step(const PlanningProblem& problem);

// The sizes of a cluster for a job: the fastest plan on each of several numbers of servers, the
// resources that the job uses there, the optimal sizes, and the one that an objective picks.

enum class Objective { kTime, kCost, kDevices, kMemory };
std::vector<std::string> objective_names();  // "time", "cost", "devices", "memory"
std::optional<Objective> objective_named(std::string_view name);
std::string to_string(Objective objective);

struct ClusterSizesOptions {
  int steps = 0;     // of the job; 0: not known, usage is that of 1e9 tokens
  double price = 0;  // of a device and hour
  int threads = 1;
};

struct ClusterSize {
  int servers = 0;
  int devices = 0;
  Plan plan;
  double tokens_per_s = 0;  // of all devices
  double mfu = 0;
  double efficiency = 1;    // tokens of a device, over those at the smallest size
  ResourceUsage usage;      // of ClusterSizes::tokens
  bool is_optimal = false;  // no other size takes less time for as many device hours, or fewer of
                            // them in as much time
};

// The servers are too few for the job, or do not divide it.
struct SkippedSize {
  int servers = 0;
  std::string reason;
};

struct ClusterSizes {
  double tokens = 0;               // that usage is of
  int steps = 0;                   // the same, where the job says how many
  std::vector<ClusterSize> sizes;  // ascending; at least one
  std::vector<SkippedSize> left_out;
};

// 1 to `most` where these are eight at most; else powers of two, what lies in the middle between
// them (3, 6, 12 ...), and `most`. Ascending.
std::vector<int> server_counts(int most);

// The fastest plan on a number of servers.
struct SizedPlan {
  int servers = 0;
  Plan plan;
};

// The number of servers from `least` to `most` on which the job is fastest: all of them use their
// devices, so some numbers divide no job. Looks from `most` down as long as a plan that uses its
// devices a sixth better could still win; of many numbers at the largest, and at those that divide
// the batch best. Nothing where no number of them has a plan that fits.
std::optional<SizedPlan> fastest_server_count(const PlanningProblem& problem, int least, int most,
                                              int threads = 1);

// The problem on each of server_counts() of its servers, the first of the cluster in rank order.
// Where a number has no plan, or one that uses its devices worse than the number before it, also on
// the fastest of the numbers between the two. Fails with kInvalidInput and the message of
// search_plans() for all servers, where no number of them has a plan that fits.
Result<ClusterSizes> plan_cluster_sizes(const PlanningProblem& problem,
                                        const ClusterSizesOptions& options);

// Index into sizes.sizes: fastest, cheapest, smallest, or least memory a device; of equals, that of
// the fewest devices. Fails with kInvalidInput where `within` is given and no size ends in it.
Result<std::size_t> select_size(const ClusterSizes& sizes, Objective objective,
                                std::optional<Seconds> within = std::nullopt);

// Metrics of a plan beside its times: use of the devices, uncertainty of the figures,
// sensitivities, and obstacles.

struct PredictionInterval {
  Seconds low;
  Seconds high;
  bool is_compared = true;  // false: no published run of the kind was, and the interval is wider
};

// The step's part of one change of the cluster: -0.05 is five per cent faster.
struct Sensitivity {
  std::string what;  // "network_rate"
  double change = 0.1;
  double step_change = 0;
};

struct PlanMetrics {
  FlopsPerSecond per_device;           // operations of the model
  FlopsPerSecond hardware_per_device;  // with what is computed again
  double mfu = 0;                      // of the peak of the precision
  double tokens_per_s = 0;
  MemoryFit fit = MemoryFit::kFits;
  PredictionInterval interval;  // 80 % of steps like it are in between, as replayed rows are
  std::vector<Sensitivity> sensitivities;
  std::string binding;  // "matmul 61 %, bubble 9 %"
};

// Operations of the model on one device, and their share of its peak in the precision.
FlopsPerSecond rate_per_device(const PlanningProblem& problem, const Plan& plan);
double mfu(const PlanningProblem& problem, const Plan& plan);

// The parts of a plan's step by their names: those of the estimate, or the phases of a simulation.
std::vector<NamedStepPart> plan_parts(const Plan& plan);

// The memory of a device of each stage, first to last.
std::vector<cost::GpuMemory> stage_memories(const PlanningProblem& problem, const Plan& plan);

// The layers of each stage.
std::vector<int> layers_of_stages(const PlanningProblem& problem, const Plan& plan);

// "needs 120 GiB of the 80 GiB of a device: it does not fit; ...", with what would help; "" of a
// plan that fits.
std::string memory_shortfall(const PlanningProblem& problem, const Plan& plan);

PredictionInterval prediction_interval(const PlanningProblem& problem, const Plan& plan);

// Requires that `plan` is one of the problem.
PlanMetrics plan_metrics(const PlanningProblem& problem, const Plan& plan);

// The difference between two plans, part by part of the step.

// One side of a comparison: a plan's step by its parts, and its memory.
struct ComparedPlan {
  std::string name;
  std::vector<NamedStepPart> parts;
  double memory = 0;                           // bytes a device
  std::optional<workload::Strategy> strategy;  // complete; none: not known
  bool fits = true;                            // its devices

  Seconds step() const;
};
ComparedPlan compared_plan(const std::string& name, const Plan& plan);

struct PartDifference {
  std::string part;
  Seconds a;
  Seconds b;
};

struct PlanDifference {
  std::vector<PartDifference> parts;  // that differ by more than a thousandth of the step, the
                                      // largest first
  // "A takes 12.3 % less time than B: it saves dp_comm 1.20 s, bubble 310 ms, and pays tp_comm
  // 90 ms"
  std::string sentence;
};
PlanDifference compare_plans(const ComparedPlan& a, const ComparedPlan& b);

// Plans as JSON. Keys carry the unit.

// {"step_time_s","tflops_per_device","hardware_tflops_per_device","mfu","tokens_per_s",
// "memory_per_device_bytes","fits","fit","interval":{"low_s","high_s"},"strategy",
// "breakdown":{"matmul_s",...},"memory":{"weights_bytes",...},"worst_stage",
// "memory_by_stage":[{"weights_bytes",...}],"sensitivities",
// "binding"}
nlohmann::json plan_to_json(const PlanningProblem& problem, const Plan& plan);

// The parts of either, and bytes, which are whole.
nlohmann::json breakdown_to_json(const std::vector<NamedStepPart>& parts);
nlohmann::json memory_to_json(const cost::GpuMemory& memory);
long long whole_bytes(double bytes);

// The figures of one plan among many: no sensitivities.
// {"strategy","step_time_s","interval","memory_per_device_bytes","fits"}
nlohmann::json plan_row(const PlanningProblem& problem, const Plan& plan);

// {"tokens","steps","sizes":[{"servers","devices","strategy","step_time_s",...,"time_s",
// "device_hours","kwh","cost","optimal"}],"left_out":[{"servers","reason"}]}: of each size the
// figures of plan_row(), of all tokens; "steps" where the job says how many, "cost" where
// there is a price.
nlohmann::json cluster_sizes_to_json(const PlanningProblem& problem, const ClusterSizes& sizes,
                                     double price);

}  // namespace regatta::plan
