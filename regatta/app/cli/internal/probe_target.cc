#include "regatta/app/cli/internal/probe_target.h"

#include <utility>

#include <fmt/core.h>

#include "regatta/app/cli/internal/find_lab.h"
#include "regatta/app/cli/internal/job_file.h"
#include "regatta/app/cli/internal/time_flag.h"
#include "regatta/model/topo/addresses.h"
#include "regatta/network/probe/handshake.h"

namespace regatta::cli {
namespace {

constexpr TimeRange kWait{{0.1}, {86400}, "20s"};

Result<ProbeTarget> target_of(const std::string& name) {
  REGATTA_TRY(lab, find_lab(name));
  REGATTA_TRY(graph, lab::graph_of(lab));
  fabric::Routes routes(graph);
  ProbeTarget target{.name = name,
                     .lab = lab,
                     .graph = std::move(graph),
                     .routes = std::move(routes),
                     .seeds = {}};
  for (const topo::Node& node : target.graph.nodes)
    target.seeds.push_back(topo::hash_seed(name, node.name));
  return target;
}

}  // namespace

Result<ProbeTimes> parse_times(const ProbeOptions& options) {
  ProbeTimes times;
  REGATTA_TRY(period, time_flag("--period", options.period, kProbePeriods, "ms"));
  times.period = period;
  if (!options.wait.empty() && options.listen.empty())
    return Error{Code::kInvalidInput,
                 "--wait: is for real servers, with --listen; probers of a lab start at once, so "
                 "leave it out"};
  REGATTA_TRY(wait, time_flag("--wait", options.wait.empty() ? kWait.like : options.wait, kWait));
  times.wait = wait;
  if (options.duration.empty()) return times;
  REGATTA_TRY(duration, time_flag("--duration", options.duration));
  if (duration.value <= 0)
    return Error{Code::kInvalidInput, "--duration: must be above 0, like 10s"};
  times.duration = duration;
  return times;
}

Result<ProbeTarget> find_target(const ProbeOptions& options) {
  if (options.lab.empty() && options.cluster.empty())
    return Error{Code::kInvalidInput, "probe: give a cluster file, or name a lab with --lab"};
  if (!options.lab.empty() && !options.cluster.empty())
    return Error{Code::kInvalidInput,
                 fmt::format("--lab {}: the lab has a cluster file of its own; leave out {}",
                             options.lab, options.cluster)};
  if (!options.lab.empty() && !options.listen.empty())
    return Error{Code::kInvalidInput,
                 "--listen: is for real servers; give their cluster file instead of --lab"};
  if (options.transport != "udp" && options.listen.empty())
    return Error{Code::kInvalidInput,
                 "--transport: servers of a lab have no RDMA devices; leave it out, or give "
                 "--listen for real servers"};
  if (!options.lab.empty()) return target_of(options.lab);
  REGATTA_TRY(cluster, load_cluster(options.cluster));
  if (!options.listen.empty()) {
    topo::Graph graph = build_graph(cluster);
    fabric::Routes routes(graph);
    std::vector<std::uint32_t> seeds = topo::hash_seeds(cluster, graph);
    return ProbeTarget{.name = cluster.name,
                       .lab = {},
                       .graph = std::move(graph),
                       .routes = std::move(routes),
                       .seeds = std::move(seeds)};
  }
  for (const topo::Server& server : cluster.servers)
    if (!server.address.empty())
      return Error{Code::kInvalidInput,
                   fmt::format("server {}: is real ({}); start regatta-prober {} --server NAME "
                               "--collector THIS_HOST:{} on each, and give --listen {} here",
                               server.name, server.address, options.cluster, probe::kReportPort,
                               probe::kReportPort)};
  REGATTA_TRY(target, target_of(cluster.name));
  REGATTA_TRY_DO(lab::check_same_cluster(*target.lab, cluster));
  return target;
}

}  // namespace regatta::cli
