#include "regatta/platform/job_plan/planned_job.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <vector>

#include <fmt/format.h>

#include "regatta/base/core/ids.h"
#include "regatta/planning/plan/estimate.h"
#include "regatta/planning/plan/placement.h"
#include "regatta/platform/sched/cluster_snapshot.h"

namespace regatta::job_plan {
namespace {

// The domains of one level, as servers.
std::vector<std::vector<ServerId>> domains_of(const topo::Cluster& cluster,
                                              sched::TopologyLevel level) {
  const std::vector<sched::ClusterNode> nodes = sched::cluster_nodes(cluster, 0, 0);
  std::vector<std::vector<ServerId>> domains;
  for (int i = 0; i < static_cast<int>(nodes.size()); ++i) {
    const int domain = sched::domain_of(nodes, i, level);
    if (domain >= static_cast<int>(domains.size())) domains.resize(as_index(domain) + 1);
    at(domains, domain).push_back({i});
  }
  return domains;
}

// `count` servers below one domain of the level, taken in turns from the domains of the level
// below, so that they are spread. Nothing where no domain has as many.
std::vector<ServerId> spread_servers(const topo::Cluster& cluster, sched::TopologyLevel level,
                                     std::size_t count) {
  const auto domains = domains_of(cluster, level);
  const auto found = std::find_if(domains.begin(), domains.end(),
                                  [&](const auto& servers) { return servers.size() >= count; });
  if (found == domains.end()) return {};
  if (level == sched::TopologyLevel::kServer) return {found->begin(), found->begin() + 1};
  const auto below =
      domains_of(cluster, static_cast<sched::TopologyLevel>(static_cast<int>(level) - 1));
  std::vector<ServerId> servers;
  for (std::size_t turn = 0; servers.size() < count; ++turn) {
    for (const std::vector<ServerId>& domain : below)
      if (turn < domain.size() && servers.size() < count &&
          std::find(found->begin(), found->end(), domain.front()) != found->end())
        servers.push_back(domain[turn]);
  }
  std::sort(servers.begin(), servers.end());
  return servers;
}

// The time that a step waits for the network on these servers; nothing where its ranks find no
// place there.
std::optional<Seconds> network_wait(const topo::Cluster& cluster,
                                    const plan::PlanningProblem& problem, const plan::Plan& plan,
                                    std::vector<ServerId> servers) {
  const plan::EstimateInput input = plan::input_of(problem, plan.strategy);
  const plan::StrategyTraffic traffic =
      plan::strategy_traffic(input, plan::micro_batch_work(input, problem.machine),
                             plan::micro_batches_of(problem, plan.strategy));
  const auto placement =
      plan::place_on_fabric({.cluster = cluster,
                             .strategy = plan.strategy,
                             .traffic = traffic,
                             .servers = std::move(servers),
                             .network_efficiency = problem.stack.calibration.network_efficiency});
  if (!placement) return std::nullopt;
  return placement->time.total;
}

// Consecutive ranks that exchange in every layer.
int layer_ranks(const workload::Strategy& strategy) {
  return std::max(strategy.tp * strategy.cp, strategy.ep * std::max(1, strategy.etp));
}

}  // namespace

std::array<double, sched::kTopologyLevels> step_slowdown(const topo::Cluster& cluster,
                                                         const plan::PlanningProblem& problem,
                                                         const plan::Plan& plan) {
  std::array<double, sched::kTopologyLevels> slowdown{1, 1, 1, 1};
  if (cluster.fabric.tiers < 2 || problem.cluster != nullptr) return slowdown;
  const auto count = as_index(problem.devices / problem.server.device_count);
  const Seconds step = plan.estimate.step.total();
  std::optional<Seconds> least;
  for (int level = 0; level < sched::kTopologyLevels; ++level) {
    if (level > 0) at(slowdown, level) = at(slowdown, level - 1);
    std::vector<ServerId> servers =
        spread_servers(cluster, static_cast<sched::TopologyLevel>(level), count);
    if (servers.size() < count) continue;
    const auto wait = network_wait(cluster, problem, plan, std::move(servers));
    if (!wait) continue;
    if (!least) least = wait;
    at(slowdown, level) = std::max(at(slowdown, level), 1 + (*wait - *least) / step);
  }
  return slowdown;
}

Result<sched::JobRequest> planned_request(const PlannedJob& job) {
  const topo::ServerType& server = job.problem.server;
  if (server.device_count > sched::kNodeDevicesMax)
    return Error{Code::kInvalidInput,
                 fmt::format("server type {}: {} devices; the scheduler knows nodes of at most {}",
                             server.name, server.device_count, sched::kNodeDevicesMax)};
  const std::vector<plan::ClusterSize>& sizes = job.sizes.sizes;
  const plan::ClusterSize& smallest = sizes.front();
  const plan::PlanningProblem problem = plan::on_servers(job.problem, smallest.servers);
  sched::JobRequest request;
  request.name = job.name;
  sched::Role role;
  role.name = "trainer";
  role.replicas_min = smallest.servers;
  role.replicas_max = sizes.back().servers;
  role.devices = server.device_count;
  const int ranks = layer_ranks(smallest.plan.strategy);
  const int together = (ranks + server.device_count - 1) / server.device_count;
  if (together > 1 && together <= job.cluster.fabric.servers_per_leaf) {
    role.subgroup_replicas = together;
    role.subgroup_level = sched::TopologyLevel::kLeaf;
  }
  request.roles = {role};
  request.device_types = {server.device.name};
  request.slowdown = step_slowdown(job.cluster, problem, smallest.plan);
  for (const plan::ClusterSize& size : sizes)
    request.throughput.push_back({.devices = size.devices, .throughput = size.tokens_per_s});
  if (job.sizes.steps > 0)
    request.run_time.median = smallest.plan.estimate.step.total() * job.sizes.steps;
  return request;
}

}  // namespace regatta::job_plan
