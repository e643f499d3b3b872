#include <algorithm>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "regatta/base/core/ids.h"
#include "regatta/base/core/text.h"
#include "regatta/model/cost/software_stack.h"
#include "regatta/planning/plan/placement.h"
#include "regatta/planning/plan/plan_search.h"

namespace regatta::plan {
namespace {

MachineModel machine_of(const workload::ModelShape& model, workload::Precision precision,
                        const topo::ServerType& server, const cost::SoftwareStack& stack) {
  const workload::Strategy none;
  return machine_model(
      {.model = model, .strategy = none, .precision = precision, .server = server, .stack = stack});
}

// A device of a CPU server makes as many products a second as its description says, else as were
// measured.
FlopsPerSecond peak_of(const PlanningProblem& problem, const topo::ServerType& server) {
  if (!problem.simulated) {
    return machine_of(problem.model, problem.precision, server, problem.stack)
        .engines.products.peak;
  }
  const topo::DeviceType& device = server.device;
  if (device.fp32_peak.value > 0) return device.fp32_peak * topo::described_share(device);
  FlopsPerSecond fastest;
  const auto known = problem.simulated->rates.devices.find(device.name);
  if (known == problem.simulated->rates.devices.end()) return fastest;
  for (const cost::MatmulRate& rate : known->second.matmul)
    fastest = std::max(fastest, rate.rate);
  return fastest;
}

// All but their names and sources.
bool is_same_server(const topo::ServerType& a, const topo::ServerType& b) {
  const auto device = [](const topo::DeviceType& one) {
    return std::tuple(one.name, one.kind, one.fp32_peak, one.bf16_peak, one.fp16_peak, one.fp8_peak,
                      one.mxfp8_peak, one.nvfp4_peak, one.processors, one.memory,
                      one.memory_bandwidth, one.cpu_share);
  };
  const auto server = [](const topo::ServerType& one) {
    return std::tuple(one.device_count, one.intra.kind, one.intra.bandwidth, one.intra.latency,
                      one.nic_count, one.nic_rate, one.numa_nodes, one.pcie.switches,
                      one.pcie.has_cascades, one.pcie.has_one_host_bridge, one.scale_up.servers,
                      one.scale_up.bandwidth, one.scale_up.latency,
                      one.scale_up.in_network_reduction);
  };
  return device(a.device) == device(b.device) && server(a) == server(b);
}

// The types of its servers, the first server's first.
std::vector<std::string> used_types(const topo::Cluster& cluster) {
  std::vector<std::string> types;
  for (const topo::Server& server : cluster.servers)
    if (std::ranges::find(types, server.type) == types.end()) types.push_back(server.type);
  return types;
}

// Its devices run the job's precision, and something joins it to the others.
Status check_server(const workload::Job& job, const topo::Cluster& cluster, const std::string& name,
                    const cost::SoftwareStack& stack) {
  const topo::ServerType& server = cluster.server_types.at(name);
  topo::Cluster alone = cluster;
  std::erase_if(alone.servers, [&](const topo::Server& one) { return one.type != name; });
  MachineModel machine = machine_of(job.model, job.precision, server, stack);
  if (alone.servers.size() > 1) machine.network = cost::cluster_network(alone, stack);
  REGATTA_TRY_DO(check_machine_model(machine, server.device, job.precision));
  if (cluster.servers.size() == 1 || machine.network.reach.back().rate.value > 0) return {};
  return Error{Code::kInvalidInput,
               fmt::format("cluster {}: nothing carries data between its servers; give server type "
                           "{} NICs with a rate, and the fabric uplinks",
                           cluster.name, name)};
}

// A step on GPUs is a closed form, one on CPUs a simulation: none is of both.
Status check_gpus_alone(const topo::Cluster& cluster) {
  for (const std::string& type : used_types(cluster)) {
    const topo::DeviceType& device = cluster.server_types.at(type).device;
    if (device.kind == topo::DeviceKind::kGpu) continue;
    return Error{Code::kInvalidInput,
                 fmt::format("cluster {}: server type {} has {} devices beside the GPUs of others; "
                             "plan for servers of either kind",
                             cluster.name, type, device.name)};
  }
  return {};
}

// Regatta's own trainer on CPUs. Measured steps were 1.0 to 11.6 % longer than predicted ones, or
// as long (docs/benchmarks.md, lab).
const cost::SoftwareStack& simulated_stack() {
  static const cost::SoftwareStack stack = [] {
    cost::SoftwareStack one;
    one.name = "regatta";
    one.fitted_on = "none; the rates of devices and paths are measured or described";
    one.assumes = "Regatta's own trainer; every rank of a step is simulated";
    one.low = 0.98;
    one.high = 1.15;
    return one;
  }();
  return stack;
}

}  // namespace

bool has_several_types(const topo::Cluster& cluster) {
  return std::ranges::any_of(used_types(cluster), [&](const std::string& type) {
    return !is_same_server(cluster.server_types.at(type), cluster.type_of(ServerId{0}));
  });
}

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

bool is_heterogeneous(const PlanningProblem& problem) {
  return problem.cluster != nullptr && !problem.simulated;
}

std::string device_names(const PlanningProblem& problem) {
  std::vector<std::string> names;
  for (const ServerId server : problem.servers) {
    const std::string& name = problem.cluster->type_of(server).device.name;
    if (std::ranges::find(names, name) == names.end()) names.push_back(name);
  }
  return names.empty() ? problem.server.device.name : join(names, " and ");
}

int server_count(const PlanningProblem& problem) {
  return problem.cluster != nullptr ? static_cast<int>(problem.servers.size())
                                    : problem.devices / problem.server.device_count;
}

Result<PlanningProblem> planning_problem(const workload::Job& job, const topo::Cluster& cluster,
                                         const cost::SoftwareStack& stack) {
  REGATTA_TRY_DO(check_placement_is_open(job));
  REGATTA_TRY_DO(check_gpus_alone(cluster));
  for (const std::string& type : used_types(cluster))
    REGATTA_TRY_DO(check_server(job, cluster, type, stack));
  PlanningProblem problem{.model = job.model,
                          .global_batch = job.global_batch,
                          .precision = job.precision,
                          .request = job.strategy,
                          .server = cluster.type_of(ServerId{0}),
                          .stack = stack};
  problem.machine = machine_of(job.model, job.precision, problem.server, stack);
  if (!has_several_types(cluster)) {
    problem.machine.network = cost::cluster_network(cluster, stack);
    problem.devices = static_cast<int>(cluster.servers.size()) * problem.server.device_count;
    return problem;
  }
  problem.cluster = &cluster;
  return on_servers(std::move(problem), *servers_without(cluster, {}));
}

PlanningProblem planning_problem(const workload::Job& job, const topo::Cluster& cluster,
                                 const cost::Rates& rates) {
  PlanningProblem problem{.model = job.model,
                          .global_batch = job.global_batch,
                          .precision = job.precision,
                          .request = job.strategy,
                          .server = cluster.type_of(ServerId{0}),
                          .stack = simulated_stack(),
                          .cluster = &cluster,
                          .simulated = SimulatedJob{job, rates}};
  PlanningProblem whole = on_servers(std::move(problem), *servers_without(cluster, {}));
  if (!job.placement.empty()) whole.devices = static_cast<int>(job.placement.size());
  return whole;
}

PlanningProblem on_servers(PlanningProblem problem, int servers) {
  if (problem.cluster != nullptr) {
    problem.servers.resize(static_cast<std::size_t>(servers), ServerId{0});
    return on_servers(problem, std::vector<ServerId>(problem.servers));
  }
  problem.devices = servers * problem.server.device_count;
  problem.machine.network = cost::network_of_job(problem.machine.network, servers);
  return problem;
}

PlanningProblem on_servers(PlanningProblem problem, const std::vector<ServerId>& servers) {
  if (problem.cluster == nullptr)
    return on_servers(std::move(problem), static_cast<int>(servers.size()));
  problem.servers = servers;
  problem.devices = 0;
  FlopsPerSecond peak;
  for (const ServerId server : servers) {
    const topo::ServerType& type = problem.cluster->type_of(server);
    problem.devices += type.device_count;
    peak.value += peak_of(problem, type).value * type.device_count;
  }
  // The mean of all devices, which the use of them is a share of.
  problem.machine.engines.products.peak = {peak.value / std::max(1, problem.devices)};
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
          .accepts = problem.accepts,
          .cluster = problem.cluster,
          .servers = problem.servers,
          .simulated = problem.simulated,
          .even_replicas = problem.even_replicas};
}

}  // namespace regatta::plan
