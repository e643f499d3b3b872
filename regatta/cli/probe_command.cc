#include "regatta/cli/probe_command.h"

#include <atomic>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "regatta/cli/arguments.h"
#include "regatta/cli/heal_reports.h"
#include "regatta/cli/load.h"
#include "regatta/cli/probe_output.h"
#include "regatta/cli/stop_signal.h"
#include "regatta/cli/time_flag.h"
#include "regatta/core/text.h"
#include "regatta/core/units_text.h"
#include "regatta/fabric/routes.h"
#include "regatta/lab/lab.h"
#include "regatta/os/clock.h"
#include "regatta/os/process.h"
#include "regatta/probe/collector.h"
#include "regatta/topo/addresses.h"

namespace regatta::cli {
namespace {

constexpr Seconds kLook{0.01};
constexpr Seconds kCarriers{0.3};
constexpr Seconds kBegins{20};  // until all probers tell something

struct Options {
  std::string cluster;
  std::string period = "10ms";
  std::string duration;
  bool heals = false;
  bool json = false;
};

struct Times {
  Seconds period;
  Seconds duration;  // 0: until Ctrl-C
};

Result<Times> parse_times(const Options& options) {
  Times times;
  REGATTA_TRY(period, time_flag("--period", options.period));
  if (period.value < 0.01 || period.value > 1)
    return Error{Code::kInvalidInput, "--period: must be from 10ms to 1s, like 10ms"};
  times.period = period;
  if (options.duration.empty()) return times;
  REGATTA_TRY(duration, time_flag("--duration", options.duration));
  if (duration.value <= 0)
    return Error{Code::kInvalidInput, "--duration: must be above 0, like 10s"};
  times.duration = duration;
  return times;
}

Result<lab::LabInfo> find_lab(const topo::Cluster& cluster) {
  for (const topo::Server& server : cluster.servers)
    if (!server.address.empty())
      return Error{Code::kUnsupported,
                   fmt::format("server {}: is real ({}); on real servers start regatta-prober "
                               "CLUSTER --server NAME on each, this command probes labs only",
                               server.name, server.address)};
  auto lab = lab::find(cluster.name);
  if (!lab && lab.error().code == Code::kNotFound)
    return Error{Code::kInvalidInput, lab.error().message + "; start it with regatta lab up"};
  if (!lab) return lab.error();
  REGATTA_TRY_DO(lab::check_same_cluster(*lab, cluster));
  return lab;
}

// The probers of all servers; ends them.
class Probers {
 public:
  Probers() = default;
  ~Probers() {
    for (const pid_t pid : pids_)
      static_cast<void>(os::send_signal(pid, SIGTERM).has_value());
    // One that is stopped does not see that.
    for (const pid_t pid : pids_)
      static_cast<void>(os::terminate(pid, Seconds{0.5}).has_value());
  }
  Probers(const Probers&) = delete;
  Probers& operator=(const Probers&) = delete;

  Status start(const lab::LabInfo& lab, const topo::Cluster& cluster, const Options& options,
               probe::Collector& collector) {
    REGATTA_TRY(folder, os::executable_folder());
    const std::string path = std::filesystem::absolute(options.cluster).string();
    for (const topo::Server& server : cluster.servers) {
      REGATTA_TRY(pipe, os::make_pipe());
      REGATTA_TRY(pid, lab::spawn(lab, server.name,
                                  {folder + "/regatta-prober", path, "--server", server.name,
                                   "--period", options.period},
                                  {.environment = {}, .stdout_fd = pipe.write_end.get()}));
      pids_.push_back(pid);
      collector.add(std::move(pipe.read_end));
    }
    return {};
  }

 private:
  std::vector<pid_t> pids_;
};

// Cables that lost or got back their carrier.
class Carriers {
 public:
  Status look(const lab::LabInfo& lab, probe::Collector& collector) {
    if (os::monotonic_now() < next_) return {};
    next_ = os::monotonic_now() + kCarriers;
    REGATTA_TRY(states, lab::link_states(lab));
    up_.resize(states.size(), true);
    for (std::size_t i = 0; i < states.size(); ++i) {
      if (states[i].up == up_[i]) continue;
      up_[i] = states[i].up;
      collector.add(diag::CarrierEvent{.link = LinkId{static_cast<int>(i)}, .up = states[i].up});
    }
    return {};
  }

 private:
  std::vector<bool> up_;
  Seconds next_;
};

Status wait_until_begun(const topo::Graph& graph, probe::Collector& collector,
                        const std::atomic<bool>& stop) {
  const Seconds until = os::monotonic_now() + kBegins;
  while (!collector.not_begun().empty() && !stop) {
    REGATTA_TRY(news, collector.gather(kLook));
    std::vector<std::string> names;
    const bool is_late = os::monotonic_now() > until;
    for (const NodeId node : is_late ? collector.not_begun() : collector.ended())
      names.push_back(graph.nodes[node.index()].name);
    if (!names.empty())
      return Error{Code::kUnavailable,
                   "prober of " + join(names, ", ") + ": tells nothing; see what it printed"};
  }
  return {};
}

Status probe_lab(const topo::Cluster& cluster, const lab::LabInfo& lab, const Options& options,
                 const Times& times) {
  const topo::Graph graph = build_graph(cluster);
  const fabric::Routes routes(graph);
  const std::vector<std::uint32_t> seeds = topo::hash_seeds(cluster, graph);
  const probe::Matrix matrix = probe::plan_matrix(graph, routes, seeds);
  if (matrix.probes.empty())
    return Error{Code::kInvalidInput,
                 "cluster " + cluster.name + ": has no two NICs on one rail to probe between"};
  ProbeOutput output(cluster, graph, matrix, options.json);
  output.coverage(probe::cover(graph, matrix));
  const std::atomic<bool>& stop = watch_stop_signals();
  probe::Collector collector(graph, matrix, times.period);
  Probers probers;
  REGATTA_TRY_DO(probers.start(lab, cluster, options, collector));
  REGATTA_TRY_DO(wait_until_begun(graph, collector, stop));
  std::optional<HealReports> healer;
  if (options.heals) {
    REGATTA_TRY(opened, HealReports::open(lab.folder + "/heal.sock", graph));
    healer.emplace(std::move(opened));
  }
  Carriers carriers;
  const Seconds begin = os::monotonic_now();
  while (!stop && (times.duration.value <= 0 || os::monotonic_now() - begin < times.duration)) {
    REGATTA_TRY_DO(carriers.look(lab, collector));
    REGATTA_TRY(news, collector.gather(kLook));
    output.news(news, os::monotonic_now() - begin);
    if (healer) {
      REGATTA_TRY_DO(healer->tell(news, os::monotonic_now()));
    }
    if (collector.ended().size() == collector.servers())
      return Error{Code::kUnavailable,
                   "all probers have ended; the lab is down, or see what they printed"};
  }
  output.pairs(collector);
  return {};
}

int run(const Options& options) {
  const auto times = parse_times(options);
  if (!times) return report_error(times.error());
  const auto cluster = load_cluster(options.cluster);
  if (!cluster) return report_error(cluster.error());
  const auto lab = find_lab(*cluster);
  if (!lab) return report_error(lab.error());
  const Status status = probe_lab(*cluster, *lab, options, *times);
  return status ? 0 : report_error(status.error());
}

}  // namespace

void add_probe_command(CLI::App& app, int& exit_status) {
  const auto options = std::make_shared<Options>();
  CLI::App* probe = add_command(
      app, "probe", "Probe every link of a lab in both directions, and name what is broken",
      "regatta lab up examples/cluster.yaml\n"
      "  regatta probe examples/cluster.yaml --duration 10s\n"
      "Break something meanwhile with regatta lab fault. Without --duration it ends with Ctrl-C.",
      [=, &exit_status] { exit_status = run(*options); });
  probe->add_option("CLUSTER", options->cluster, "Cluster file of a lab that is up")
      ->required()
      ->check(not_empty());
  probe->add_option("--period", options->period, "Between two probes on the same way, 10ms to 1s")
      ->type_name("TIME")
      ->capture_default_str();
  probe->add_option("--duration", options->duration, "How long, like 10s; for ever when left out")
      ->type_name("TIME")
      ->check(not_empty());
  probe->add_flag("--heal", options->heals,
                  "Tell regatta heal --lab what is broken, so that it withdraws it");
  probe->add_flag("--json", options->json, "Print a JSON object a line");
}

}  // namespace regatta::cli
