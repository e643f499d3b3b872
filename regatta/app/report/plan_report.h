// report/plan_report.h: plans, searches for plans and comparisons of plans: text for people, JSON
// for programs. All references outlive the call. Texts end with a newline.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "regatta/base/core/result.h"
#include "regatta/base/core/units.h"
#include "regatta/model/topo/cluster.h"
#include "regatta/model/workload/job.h"
#include "regatta/planning/plan/placement.h"
#include "regatta/planning/plan/plan_metrics.h"
#include "regatta/planning/plan/plan_search.h"
#include "regatta/planning/plan/simulated_plan.h"
#include "regatta/planning/replay/replay.h"
#include "regatta/planning/replay/stack_fit.h"
#include "regatta/planning/replay/training_log.h"

namespace regatta::report {

// The plan that `regatta run` trains: the fastest of a search.
struct ChosenPlanReport {
  const workload::Job& job;
  const topo::Cluster& cluster;
  std::string rates_source;
  const plan::SimulatedSearchResult& result;
  std::string ports_method;  // of its connections: "hashed"
  std::string ports_reason;  // "asked for"
};
// The job, the chosen plan and the four next ones, the method of source ports.
std::string chosen_plan_text(const ChosenPlanReport& chosen);

// Plans of any cluster: equal GPU servers, GPU servers of several types, CPUs.

struct PlanReport {
  const workload::Job& job;
  const topo::Cluster& cluster;
  const plan::PlanningProblem& problem;
  const plan::Plan& plan;
  std::optional<plan::ScoredPlacement> placement;  // none where the fabric does not matter
  std::vector<std::string> warnings = {};          // that the JSON repeats
};

struct PlanSearchReport {
  PlanReport best;
  const plan::PlanSearchResult& result;
  std::vector<plan::Plan> compared = {};  // the user's own
  Seconds search_time;
  bool has_frontier = false;  // also lists the plans that no other beats in both time and memory
  int top = 10;               // rows of each list
};

// A strategy as it stands, whether it fits or not.
std::string exact_plan_text(const PlanReport& report);
nlohmann::json exact_plan_json(const PlanReport& report);
// The ranking, for CPUs what was ruled out and why, and the fastest plan in full.
std::string plan_search_text(const PlanSearchReport& report);
nlohmann::json plan_search_json(const PlanSearchReport& report);

// The best plan for several numbers of servers; sizes[picked] is the one that the objective
// selects.
struct ClusterSizesReport {
  const workload::Job& job;
  const topo::Cluster& cluster;
  const plan::PlanningProblem& problem;  // of the whole cluster
  const plan::ClusterSizes& sizes;
  std::size_t picked = 0;
  plan::Objective objective = plan::Objective::kTime;
  std::optional<Seconds> within;
  double price = 0;  // of a device and hour; 0: no costs are shown
};
std::string cluster_sizes_text(const ClusterSizesReport& report);
nlohmann::json cluster_sizes_json(const ClusterSizesReport& report);

// The best plan on one of several clusters that are compared, or why there is none.
struct ComparedCluster {
  std::string name;
  int devices = 0;
  std::optional<plan::Plan> plan;
  std::string note;  // why there is no plan
  double tokens_per_s = 0;
  plan::ResourceUsage usage;  // for 1e9 tokens
};
// The tokens per second that others are compared with: the first cluster with a plan. 0: none has.
double reference_rate(const std::vector<ComparedCluster>& clusters);
std::string compared_clusters_text(const std::vector<ComparedCluster>& clusters, bool has_price);
nlohmann::json compared_clusters_json(const std::vector<ComparedCluster>& clusters, bool has_price);

// The job, cluster and software stack of a plan; empty: not known.
struct PlanPurpose {
  std::string job;
  std::string cluster;
  std::string stack = {};
};
// Two plans beside each other, A and B.
struct ComparedPlans {
  const plan::ComparedPlan& a;
  const plan::ComparedPlan& b;
  PlanPurpose a_purpose;
  PlanPurpose b_purpose;
};
std::string compared_plans_text(const ComparedPlans& plans);
nlohmann::json compared_plans_json(const ComparedPlans& plans);

// Published runs beside their prediction.

struct ReplayedSet {
  std::string name;
  std::vector<replay::PublishedRun> runs;
  std::vector<replay::PredictionPair> pairs;  // by run
  std::map<std::string, int> left_out;        // rows that are no runs, by the reason
};
// A row for each set, quantity and split; pairs of `rows` also run by run.
std::string replay_text(const std::vector<ReplayedSet>& sets, bool has_rows);
nlohmann::json replay_json(const std::vector<ReplayedSet>& sets);
// The scalars of a software stack that were fitted.
std::string fitted_stack_text(const replay::FittedStack& fitted);

// A stack that was calibrated on the user's own runs.
struct OwnCalibrationReport {
  const cost::SoftwareStack& stack;  // as it was
  const replay::OwnCalibration& own;
  const std::vector<replay::TrainingLog>& logs;  // that runs were read from
  std::string path;                              // of the file that keeps it; empty: none
};
// Each log, run and scalar, before and after.
std::string own_calibration_text(const OwnCalibrationReport& report);
nlohmann::json own_calibration_json(const OwnCalibrationReport& report);

}  // namespace regatta::report
