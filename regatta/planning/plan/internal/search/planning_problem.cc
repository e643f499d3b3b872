#include <algorithm>
#include <string>

#include <fmt/format.h>

#include "regatta/base/core/ids.h"
#include "regatta/base/core/text.h"
#include "regatta/model/cost/software_stack.h"
#include "regatta/planning/plan/estimated_plan_search.h"

namespace regatta::plan {

bool is_gpu_cluster(const topo::Cluster& cluster) {
  return std::ranges::any_of(cluster.server_types, [](const auto& type) {
    return type.second.device.kind == topo::DeviceKind::kGpu;
  });
}

Result<const cost::SoftwareStack*> choose_software_stack(const std::string& name,
                                                         const workload::Job& job,
                                                         const topo::Cluster& cluster) {
  if (name.empty()) {
    return &cost::default_software_stack(job.model, job.precision, job.strategy,
                                         cluster.type_of(ServerId{0}).device);
  }
  if (const cost::SoftwareStack* stack = cost::find_software_stack(name)) return stack;
  const std::string nearest = nearest_word(name, cost::software_stack_names());
  return Error{
      Code::kInvalidInput,
      fmt::format("there is no software stack '{}'; {}choose one of {}", printable(name, 60),
                  nearest.empty() ? "" : fmt::format("write {}, or ", nearest),
                  join(cost::software_stack_names(), ", "))};
}

Status check_placement_is_open(const workload::Job& job) {
  if (job.placement.empty()) return {};
  return Error{Code::kInvalidInput,
               fmt::format("job {}: placement: on a cluster of GPUs the plan says where ranks go; "
                           "write placement: auto, or leave the key out",
                           job.name)};
}

Result<PlanningProblem> planning_problem(const workload::Job& job, const topo::Cluster& cluster,
                                         const cost::SoftwareStack& stack) {
  REGATTA_TRY_DO(check_placement_is_open(job));
  const topo::ServerType& server = cluster.type_of(ServerId{0});
  for (const topo::Server& one : cluster.servers) {
    if (one.type == cluster.servers.front().type) continue;
    return Error{Code::kInvalidInput,
                 fmt::format("cluster {}: its servers are of several types ({}, {}); name servers "
                             "of one type",
                             cluster.name, cluster.servers.front().type, one.type)};
  }
  const workload::Strategy none;
  MachineModel machine = machine_model({.model = job.model,
                                        .strategy = none,
                                        .precision = job.precision,
                                        .server = server,
                                        .stack = stack});
  machine.network = cost::cluster_network(cluster, stack);
  REGATTA_TRY_DO(check_machine_model(machine, server.device, job.precision));
  if (cluster.servers.size() > 1 && machine.network.reach.back().rate.value <= 0) {
    return Error{
        Code::kInvalidInput,
        fmt::format("cluster {}: nothing carries data between its servers; give server type "
                    "{} NICs with a rate, and the fabric uplinks",
                    cluster.name, cluster.servers.front().type)};
  }
  return PlanningProblem{.model = job.model,
                         .global_batch = job.global_batch,
                         .precision = job.precision,
                         .request = job.strategy,
                         .server = server,
                         .stack = stack,
                         .machine = machine,
                         .devices = static_cast<int>(cluster.servers.size()) * server.device_count};
}

PlanningProblem on_servers(PlanningProblem problem, int servers) {
  problem.devices = servers * problem.server.device_count;
  problem.machine.network = cost::network_of_job(problem.machine.network, servers);
  return problem;
}

PlanningProblem with_request(const PlanningProblem& problem,
                             const workload::StrategyRequest& request) {
  return {.model = problem.model,
          .global_batch = problem.global_batch,
          .precision = problem.precision,
          .request = request,
          .server = problem.server,
          .stack = problem.stack,
          .machine = problem.machine,
          .devices = problem.devices,
          .every_form = problem.every_form,
          .accepts = problem.accepts};
}

}  // namespace regatta::plan
