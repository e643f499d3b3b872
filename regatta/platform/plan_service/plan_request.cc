#include "regatta/platform/plan_service/plan_request.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "regatta/base/core/ids.h"
#include "regatta/base/core/json.h"
#include "regatta/base/core/text.h"
#include "regatta/model/cost/rates.h"
#include "regatta/model/cost/software_stack.h"
#include "regatta/model/topo/cluster_yaml.h"
#include "regatta/model/topo/presets.h"
#include "regatta/model/workload/job.h"
#include "regatta/planning/plan/plan_metrics.h"
#include "regatta/planning/plan/plan_search.h"

namespace regatta::plan_service {
namespace {

using nlohmann::json;

constexpr std::size_t kBodyMost = std::size_t{256} << 10;
constexpr int kTopMost = 50;
constexpr int kSimulatedDevicesMost = 64;  // steps on CPUs are simulated one by one

struct PlanRequest {
  workload::Job job;
  topo::Cluster cluster;
  std::string stack;
  int top = 5;
  bool is_exact = false;
  bool every_form = false;
};

// {server: "dgx-h100", servers: 16}: a network of one tier, which no traffic between servers fills.
json cluster_of_preset(const json& given) {
  json cluster = {{"name", "form"},
                  {"server_types", {{"server", {{"preset", given["server"]}}}}},
                  {"servers", {{"count", given.value("servers", 1)}, {"type", "server"}}}};
  if (given.value("servers", 1) > 1) cluster["fabric"] = {{"tiers", {"leaf"}}};
  return cluster;
}

Result<topo::Cluster> read_cluster(const json& given) {
  if (!given.is_object())
    return Error{
        Code::kInvalidInput,
        "cluster: no map; give {\"server\": \"dgx-h100\", \"servers\": 16}, or the keys of "
        "a cluster file"};
  if (!given.contains("server")) {
    json cluster = given;
    if (!cluster.contains("name")) cluster["name"] = "form";
    return topo::parse_cluster(cluster.dump(), "cluster");
  }
  const JsonReader reader(given, "cluster");
  reader.allow({"server", "servers"});
  std::string server;
  int servers = 1;
  reader.read("server", server);
  reader.read_if("servers", servers, IntRange{1, topo::kMaxServers});
  REGATTA_TRY_DO(reader.status());
  return topo::parse_cluster(cluster_of_preset({{"server", server}, {"servers", servers}}).dump(),
                             "cluster");
}

Result<workload::Job> read_job(json given) {
  if (!given.is_object())
    return Error{Code::kInvalidInput, "job: no map; give it the keys of a job file"};
  if (!given.contains("name")) given["name"] = "form";
  REGATTA_TRY(job, workload::parse_job(given.dump(), "job"));
  REGATTA_TRY_DO(workload::check_request(job.strategy));
  return job;
}

Result<PlanRequest> read_request(std::string_view body) {
  if (body.size() > kBodyMost)
    return Error{Code::kInvalidInput,
                 fmt::format("body: longer than {} bytes; shorten it", kBodyMost)};
  REGATTA_TRY(reader, JsonReader::parse(body, "body"));
  reader.allow({"job", "cluster", "stack", "constraints", "top", "exact", "extended"});
  PlanRequest request;
  std::vector<std::string> constraints;
  reader.read_if("stack", request.stack);
  reader.read_if("constraints", constraints);
  reader.read_if("top", request.top, IntRange{1, kTopMost});
  reader.read_if("exact", request.is_exact);
  reader.read_if("extended", request.every_form);
  const json job = reader.at("job").raw();
  const json cluster = reader.at("cluster").raw();
  REGATTA_TRY_DO(reader.status());
  REGATTA_TRY(read, read_job(job));
  request.job = std::move(read);
  for (const std::string& text : constraints) {
    REGATTA_TRY(constraint, workload::parse_constraint(text, "constraints"));
    request.job.strategy.constraints.push_back(std::move(constraint));
  }
  REGATTA_TRY_DO(workload::check_request(request.job.strategy));
  REGATTA_TRY(built, read_cluster(cluster));
  request.cluster = std::move(built);
  return request;
}

json answer_json(const PlanRequest& request, const plan::PlanningProblem& problem,
                 const plan::Plan& best, std::string_view rates) {
  return {{"job", request.job.name},
          {"parameters", workload::total_parameters(request.job.model)},
          {"devices", problem.devices},
          {"device", plan::device_names(problem)},
          {"device_memory_bytes", plan::capacity_of(problem, best).value},
          {"rates", rates},
          {"plan", plan::plan_to_json(problem, best)},
          {"alternatives", json::array()}};
}

Result<std::string> answer_search(const PlanRequest& request, plan::PlanningProblem problem,
                                  std::string_view rates, const std::function<bool()>& is_late) {
  problem.every_form = request.every_form;
  if (request.is_exact) {
    REGATTA_TRY(priced, plan::exact_plan(
                            problem, plan::exact_strategy(request.job.strategy, problem.devices)));
    return answer_json(request, problem, priced, rates).dump();
  }
  // A search that is late finds nothing more, and so ends.
  problem.accepts = [&is_late](const workload::Strategy&) { return !is_late(); };
  const auto found = plan::search_plans(problem, plan::SearchMode::kPruned, request.top);
  if (is_late())
    return Error{Code::kTimeout,
                 "the search took too long; fix some of the strategy's keys, or use regatta plan"};
  if (!found) return found.error();
  json answer = answer_json(request, problem, found->ranked.front(), rates);
  for (std::size_t i = 1; i < found->ranked.size() && i < as_index(request.top); ++i)
    answer["alternatives"].push_back(plan::plan_row(problem, found->ranked[i]));
  answer["search"] = {
      {"points", found->points}, {"evaluated", found->evaluated}, {"fitting", found->fitting}};
  return answer.dump();
}

}  // namespace

Result<std::string> answer_plan_request(std::string_view body,
                                        const std::function<bool()>& is_late) {
  REGATTA_TRY(request, read_request(body));
  if (plan::is_gpu_cluster(request.cluster)) {
    const auto stack = plan::choose_software_stack(request.stack, request.job, request.cluster);
    if (!stack) return Error{stack.error().code, "stack: " + stack.error().message};
    REGATTA_TRY_DO(plan::check_placement_is_open(request.job));
    REGATTA_TRY(problem, plan::planning_problem(request.job, request.cluster, **stack));
    return answer_search(request, std::move(problem), (*stack)->name, is_late);
  }
  const auto devices = topo::all_devices(request.cluster).size();
  if (devices > kSimulatedDevicesMost)
    return Error{Code::kInvalidInput,
                 fmt::format("cluster: {} CPU devices; plan more than {} with regatta plan",
                             devices, kSimulatedDevicesMost)};
  const cost::Rates rates = cost::described_rates(request.cluster);
  return answer_search(request, plan::planning_problem(request.job, request.cluster, rates),
                       rates.source, is_late);
}

std::string plan_presets() {
  json models = json::array();
  for (const std::string& name : workload::model_preset_names()) {
    const workload::ModelShape& model = workload::find_model_preset(name)->model;
    models.push_back({{"name", name},
                      {"parameters", workload::total_parameters(model)},
                      {"layers", model.layers},
                      {"hidden", model.hidden},
                      {"seq", model.seq}});
  }
  json servers = json::array();
  for (const std::string& name : topo::server_preset_names()) {
    const topo::ServerType& server = *topo::find_server_preset(name);
    servers.push_back({{"name", name},
                       {"device", server.device.name},
                       {"devices", server.device_count},
                       {"device_memory_bytes", server.device.memory.value},
                       {"nics", server.nic_count},
                       {"nic_rate_Bps", server.nic_rate.value}});
  }
  json clusters = json::array();
  for (const auto& [server, count] : std::initializer_list<std::pair<const char*, int>>{
           {"dgx-a100-80g", 128}, {"dgx-h100", 16}, {"dgx-h100", 128}, {"gb200-nvl72", 18}})
    clusters.push_back({{"name", fmt::format("{} x {}", count, server)},
                        {"cluster", {{"server", server}, {"servers", count}}}});
  const json all = {{"models", std::move(models)},
                    {"servers", std::move(servers)},
                    {"stacks", cost::software_stack_names()},
                    {"precisions", {"fp32", "tf32", "fp16", "bf16", "fp8", "mxfp8", "nvfp4"}},
                    {"clusters", std::move(clusters)}};
  return all.dump();
}

}  // namespace regatta::plan_service
