#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "regatta/app/report/internal/link_rows.h"
#include "regatta/app/report/internal/old_names.h"
#include "regatta/app/report/run_result.h"
#include "regatta/model/topo/cluster.h"
#include "regatta/model/topo/graph.h"
#include "regatta/model/workload/job.h"
#include "regatta/planning/plan/simulated_plan.h"

namespace regatta::report {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kCandidates = 10;
constexpr std::size_t kRejected = 200;  // the rest is counted

Json plan_json(const topo::Cluster& cluster, const plan::SimulatedPlan& plan) {
  return {{"strategy", workload::strategy_to_json(plan.strategy)},
          {"placement", plan::placement_to_json(plan.placement, cluster)},
          {"placement_name", plan.placement_name}};
}

Json traffic_json(const std::vector<LinkRow>& rows, bool is_measured) {
  Json list = Json::array();
  for (const LinkRow& row : rows) {
    list.push_back({{"link", row.name},
                    {"from", row.from},
                    {"to", row.to},
                    {"bytes", (is_measured ? row.measured : row.predicted).value},
                    {"rate_Bps", row.rate.value},
                    {"share_of_rate", is_measured ? row.measured_share : row.predicted_share}});
  }
  return list;
}

Json predicted_json(const plan::Prediction& prediction, const std::vector<LinkRow>& rows) {
  return {{"step_time_s", prediction.step_time.value},
          {"phases", workload::phases_to_json(prediction.phases)},
          {"memory_per_device_bytes", prediction.memory.total().value},
          {"memory_per_device", plan::memory_to_json(prediction.memory)},
          {"memory_rank", prediction.memory_rank.value},
          {"traffic", traffic_json(rows, false)}};
}

Json measured_json(const MeasuredRun& measured, const std::vector<LinkRow>& rows) {
  Json steps = Json::array();
  for (const StepRecord& step : measured.steps)
    steps.push_back({{"step", step.step}, {"loss", step.loss}, {"time_s", step.time.value}});
  return {{"step_time_s", measured.step_time.value},
          {"step_time_min_s", measured.step_time_min.value},
          {"step_time_max_s", measured.step_time_max.value},
          {"warm_up_steps", measured.warm_up_steps},
          {"tokens_per_s", measured.tokens_per_s},
          {"phases", workload::phases_to_json(measured.phases)},
          {"steps", steps},
          {"traffic", traffic_json(rows, true)}};
}

Json ports_json(const PortAssignment& ports) {
  Json sets = Json::array();
  for (const PortAssignmentSet& set : ports.sets) {
    Json one = {
        {"name", set.name}, {"connections", set.connections}, {"max_link_connections", set.most}};
    add_old_names(one, {{"max_link_connections", "most_on_a_link"}});
    sets.push_back(std::move(one));
  }
  return {{"taken", ports.method}, {"why", ports.why}, {"sets", sets}, {"avoided", ports.avoided}};
}

// Old key, until the next minor version: predicted / measured step time - 1.
double prediction_error(const PlanRun& run) {
  return 1 / (1 + deviation(run)) - 1;
}

// plan, predicted, measured, deviation and ports of one trained plan.
Json run_json(const topo::Cluster& cluster, const topo::Graph& graph, const PlanRun& run) {
  const std::vector<LinkRow> rows = link_rows(graph, run);
  return {{"plan", plan_json(cluster, run.plan)},
          {"predicted", predicted_json(run.plan.prediction, rows)},
          {"measured", measured_json(run.measured, rows)},
          {"deviation", deviation(run)},
          {"prediction_error", prediction_error(run)},
          {"ports", ports_json(run.ports)}};
}

Json optional_json(const std::optional<double>& value) {
  return value ? Json(*value) : Json(nullptr);
}

Json sweep_json(const RunResult& result) {
  if (result.sweep.empty()) return nullptr;
  Json plans = Json::array();
  for (const PlanRun& run : result.sweep) {
    Json entry = plan_json(result.cluster, run.plan);
    entry["predicted"] = {{"step_time_s", run.plan.prediction.step_time.value},
                          {"phases", workload::phases_to_json(run.plan.prediction.phases)}};
    entry["measured"] = {{"step_time_s", run.measured.step_time.value},
                         {"phases", workload::phases_to_json(run.measured.phases)}};
    entry["deviation"] = deviation(run);
    entry["prediction_error"] = prediction_error(run);
    plans.push_back(std::move(entry));
  }
  return {{"spearman", optional_json(sweep_spearman(result))}, {"plans", plans}};
}

Json candidates_json(const RunResult& result) {
  Json list = Json::array();
  for (const plan::SimulatedPlan& candidate : result.search.ranked) {
    if (list.size() == kCandidates) break;
    list.push_back({{"strategy", workload::strategy_to_json(candidate.strategy)},
                    {"placement_name", candidate.placement_name},
                    {"step_time_s", candidate.prediction.step_time.value},
                    {"memory_per_device_bytes", candidate.prediction.memory.total().value},
                    {"phases", workload::phases_to_json(candidate.prediction.phases)}});
  }
  return list;
}

Json rejected_json(const RunResult& result) {
  Json list = Json::array();
  for (const plan::RejectedStrategy& rejected : result.search.rejected) {
    if (list.size() == kRejected) break;
    list.push_back({{"strategy", workload::strategy_to_json(rejected.strategy)},
                    {"kind", plan::to_string(rejected.kind)},
                    {"placement_name", rejected.placement_name},
                    {"reason", rejected.reason}});
  }
  return list;
}

Json cluster_json(const topo::Cluster& cluster) {
  Json servers = Json::array();
  for (const topo::Server& server : cluster.servers)
    servers.push_back({{"name", server.name}, {"type", server.type}});
  return {{"name", cluster.name},
          {"devices", topo::all_devices(cluster).size()},
          {"servers", servers},
          {"tiers", cluster.fabric.tiers},
          {"uplink_Bps", cluster.fabric.uplink.value}};
}

}  // namespace

nlohmann::ordered_json result_json(const RunResult& result) {
  const topo::Graph graph = topo::build_graph(result.cluster);
  Json job = workload::job_to_json(result.job);
  job["parameters"] = workload::total_parameters(result.job.model);
  Json json = {{"started_at", result.started_at},
               {"machine", result.machine},
               {"rates_source", result.rates_source},
               {"speed_note", result.speed_note},
               {"job", job},
               {"cluster", cluster_json(result.cluster)}};
  json.update(run_json(result.cluster, graph, result.main));
  json["compare"] = nullptr;
  if (result.compare) {
    json["compare"] = run_json(result.cluster, graph, *result.compare);
    json["compare"]["speedup"] = optional_json(speedup(result));
  }
  json["sweep"] = sweep_json(result);
  json["evaluated"] = result.search.evaluated;
  json["candidates"] = candidates_json(result);
  json["rejected_count"] = result.search.rejected.size();
  json["rejected"] = rejected_json(result);
  return json;
}

std::string result_json_text(const RunResult& result) {
  // Text from outside (names) may hold broken UTF-8: replaced, never thrown.
  return result_json(result).dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace regatta::report
