#include "regatta/app/cli/internal/sched_load.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "regatta/app/cli/internal/cluster_file.h"
#include "regatta/app/cli/internal/sched_inputs.h"
#include "regatta/app/cli/internal/time_flag.h"
#include "regatta/base/core/ids.h"
#include "regatta/base/core/text.h"
#include "regatta/model/topo/cluster_yaml.h"
#include "regatta/platform/cluster_replay/demand_tables.h"
#include "regatta/platform/cluster_replay/node_events.h"
#include "regatta/platform/cluster_replay/trace_tables.h"
#include "regatta/platform/mixing/duty_tables.h"
#include "regatta/platform/mixing/interference.h"
#include "regatta/platform/packing/cluster_tables.h"

namespace regatta::cli {
namespace {

constexpr std::size_t kTableBytesMax = 1U << 28U;
constexpr TimeRange kPasts{{0}, {30 * 86400.0}, "6h"};
constexpr TimeRange kRepairs{{1}, {366 * 86400.0}, "4h"};
constexpr TimeRange kTraceTimes{{0}, {36600 * 86400.0}, "30d"};
constexpr Seconds kLeastFailureTime{86400};

bool has_column(std::string_view text, const std::string& name) {
  const std::vector<std::string> columns = split(trim(text.substr(0, text.find('\n'))), ',');
  return std::find(columns.begin(), columns.end(), name) != columns.end();
}

using TracedJobs = Result<std::vector<cluster_replay::TracedJob>>;

// A trace whose columns say what it is, and which flags are for it.
struct TraceKind {
  const char* column;
  const char* name;
  bool has_past;
  bool has_replicas;
  TracedJobs (*read)(std::string_view text, const std::string& file,
                     const cluster_replay::DemandTableOptions& demand);
};

constexpr TraceKind kTraceKinds[] = {
    {"submit_s", "the jobs of Philly", false, false,
     [](std::string_view text, const std::string& file, const auto&) {
       return cluster_replay::read_philly_jobs(text, file);
     }},
    {"app_name", "instances of services", false, false,
     [](std::string_view text, const std::string& file, const auto&) {
       return cluster_replay::read_dlrm_instances(text, file);
     }},
    {"gpu_milli", "the jobs of openb", false, false,
     [](std::string_view text, const std::string& file, const auto&) {
       return cluster_replay::read_openb_jobs(text, file);
     }},
    {"duty_pct", "GPU use of pods", true, false, cluster_replay::read_duty_jobs},
    {"qps", "requests", true, true, cluster_replay::read_service_jobs},
};

Result<cluster_replay::DemandTableOptions> demand_options(const std::string& path,
                                                          const TraceKind& kind,
                                                          const TraceFlags& flags) {
  const auto refuse = [&](std::string_view flag, std::string_view others) {
    return Error{Code::kInvalidInput,
                 fmt::format("{}: it is for traces of {}, and {} has {}; leave it out", flag,
                             others, path, kind.name)};
  };
  if (!flags.past.empty() && !kind.has_past) return refuse("--past", "GPU use or requests");
  if (flags.replicas > 0 && !kind.has_replicas) return refuse("--replicas", "requests");
  cluster_replay::DemandTableOptions demand;
  if (flags.replicas > 0) demand.service_replicas = flags.replicas;
  if (flags.past.empty()) return demand;
  REGATTA_TRY(past, time_flag("--past", flags.past, kPasts));
  demand.past = past;
  return demand;
}

TracedJobs read_trace(const std::string& path, std::string_view text, const TraceFlags& flags) {
  for (const TraceKind& kind : kTraceKinds) {
    if (!has_column(text, kind.column)) continue;
    REGATTA_TRY(demand, demand_options(path, kind, flags));
    return kind.read(text, path, demand);
  }
  return Error{Code::kInvalidInput,
               path +
                   ":1: no trace of jobs has these columns; give the jobs of Philly (submit_s), "
                   "of openb (gpu_milli), instances of services (app_name), GPU use of pods "
                   "(duty_pct) or requests (qps)"};
}

}  // namespace

Result<std::vector<cluster_replay::TracedJob>> load_trace(const std::string& path, int jobs,
                                                          const TraceFlags& flags) {
  REGATTA_TRY(text, read_named_file(path, kTableBytesMax));
  REGATTA_TRY(trace, read_trace(path, text, flags));
  if (trace.empty())
    return Error{Code::kInvalidInput, path + ": it has no job; give a trace with some"};
  if (jobs > 0 && static_cast<std::size_t>(jobs) < trace.size())
    trace.resize(static_cast<std::size_t>(jobs));
  return trace;
}

Result<double> load_interference(const std::string& path) {
  REGATTA_TRY(text, read_named_file(path, kTableBytesMax));
  REGATTA_TRY(pairs, mixing::read_job_pairs(text, path));
  std::map<std::string, std::vector<mixing::JobPair>> devices;
  for (mixing::JobPair& pair : pairs)
    devices[pair.device].push_back(std::move(pair));
  const auto most = std::max_element(
      devices.begin(), devices.end(),
      [](const auto& a, const auto& b) { return a.second.size() < b.second.size(); });
  if (most == devices.end())
    return Error{Code::kInvalidInput, path + ": no pair of jobs ran together; give measured pairs"};
  const auto fit = mixing::fit_interference(most->second, 0, 1);
  if (!fit) return Error{fit.error().code, path + ": " + fit.error().message};
  return fit->interference;
}

namespace {

Result<std::vector<sched::ClusterNode>> read_nodes_of(const std::string& path) {
  REGATTA_TRY(text, read_named_file(path, kTableBytesMax));
  if (has_column(text, "sn")) {
    REGATTA_TRY(nodes, packing::read_nodes(text, path));
    return cluster_replay::cluster_nodes_of(nodes);
  }
  if (has_column(text, "gpu_capacity_num")) return cluster_replay::read_spot_nodes(text, path);
  if (has_key(text, "servers")) {
    REGATTA_TRY(cluster, topo::parse_cluster(text, path));
    return sched::cluster_nodes(cluster, cluster_replay::kAmpleCpuMilli,
                                cluster_replay::kAmpleMemoryMib);
  }
  if (path.ends_with(".csv"))
    return Error{Code::kInvalidInput,
                 path +
                     ":1: no table of nodes has these columns; give nodes of openb (sn) or of spot "
                     "(gpu_capacity_num), a cluster file or a state file"};
  REGATTA_TRY(state, load_state(path));
  return std::move(state.snapshot.nodes);
}

}  // namespace

Result<std::vector<sched::ClusterNode>> load_nodes(const std::string& path) {
  REGATTA_TRY(nodes, read_nodes_of(path));
  if (std::none_of(nodes.begin(), nodes.end(), [](const sched::ClusterNode& node) {
        return node.devices > 0 && node.health == sched::NodeHealth::kReady;
      }))
    return Error{Code::kInvalidInput,
                 path + ": no node that is ready has a device; give a cluster with some"};
  return nodes;
}

void add_failure_options(CLI::App& command, FailureFlags& flags) {
  command
      .add_option("--failures", flags.trace,
                  "Trace of failures: lives of Titan's GPUs, faults of InfiniteHBD's servers")
      ->type_name("FILE");
  command
      .add_option("--failures-from", flags.from,
                  "Time of that trace at which the first job comes (0s)")
      ->type_name("TIME");
  command
      .add_option("--repair", flags.repair,
                  "Mean time until a failed node returns, where a trace does not say (4h)")
      ->type_name("TIME");
}

Result<Seconds> repair_time(const FailureFlags& flags) {
  return time_flag("--repair", flags.repair.empty() ? kRepairs.like : flags.repair, kRepairs);
}

Status check_failure_flags(const FailureFlags& flags, bool are_drawn) {
  if (!flags.from.empty() && flags.trace.empty())
    return Error{Code::kInvalidInput,
                 "--failures-from: it is a time of a trace of failures; give --failures, or leave "
                 "it out"};
  if (!flags.repair.empty() && flags.trace.empty() && !are_drawn)
    return Error{Code::kInvalidInput, "--repair: no node fails; give failures, or leave it out"};
  return {};
}

Status add_traced_failures(const FailureFlags& flags, cluster_replay::ReplayInput& input,
                           std::string& load) {
  if (flags.trace.empty()) return {};
  REGATTA_TRY(from,
              time_flag("--failures-from", flags.from.empty() ? "0s" : flags.from, kTraceTimes));
  REGATTA_TRY(repair, repair_time(flags));
  REGATTA_TRY(text, read_named_file(flags.trace, kTableBytesMax));
  const Seconds first = input.jobs.empty() ? Seconds{} : input.jobs.front().request.submitted;
  const Seconds last = input.jobs.empty() ? first : input.jobs.back().request.submitted;
  REGATTA_TRY(traced, cluster_replay::read_node_failures(
                          text, flags.trace, input.nodes,
                          {.from = from,
                           .duration = std::max((last - first) * 2, kLeastFailureTime),
                           .repair = repair}));
  for (cluster_replay::NodeEvent& event : traced.events)
    event.at += first;
  if (!flags.repair.empty() && !traced.needs_repair)
    return Error{
        Code::kInvalidInput,
        fmt::format("--repair: {} says when each failed node returns; leave it out", flags.trace)};
  input.node_events = std::move(traced.events);
  load += fmt::format("; {} of {} from {} ({})", pluralized(as_index(traced.failures), "failure"),
                      pluralized(as_index(traced.failed_nodes), "node"), flags.trace, traced.trace);
  return {};
}

}  // namespace regatta::cli
