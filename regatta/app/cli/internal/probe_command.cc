#include "regatta/app/cli/internal/probe_command.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "regatta/app/cli/internal/arguments.h"
#include "regatta/app/cli/internal/find_lab.h"
#include "regatta/app/cli/internal/healer_reporter.h"
#include "regatta/app/cli/internal/job_file.h"
#include "regatta/app/cli/internal/pluralized.h"
#include "regatta/app/cli/internal/probe_counters.h"
#include "regatta/app/cli/internal/probe_evidence.h"
#include "regatta/app/cli/internal/probe_lab.h"
#include "regatta/app/cli/internal/stop_signal.h"
#include "regatta/app/cli/internal/time_flag.h"
#include "regatta/base/os/clock.h"
#include "regatta/model/topo/addresses.h"
#include "regatta/network/fabric/routes.h"
#include "regatta/network/lab/lab.h"
#include "regatta/network/probe/collector.h"
#include "regatta/network/probe/evidence.h"
#include "regatta/network/probe/handshake.h"
#include "regatta/network/probe/reporter_listener.h"

namespace regatta::cli {
namespace {

constexpr Seconds kLook{0.01};
constexpr TimeRange kWait{{0.1}, {86400}, "20s"};
constexpr Seconds kBegins{20};   // until all probers of a lab report
constexpr Seconds kProgress{1};  // between two lines about who reports

struct ProbeOptions {
  std::string cluster;
  std::string lab;
  std::string listen;
  std::string period = "10ms";
  std::string duration;
  std::string wait;
  std::string heal_socket;
  std::string counters;
  std::string transport = "udp";
  bool heals = false;
  bool lists_overlaps = false;
  bool json = false;

  bool has_healer() const { return heals || !heal_socket.empty(); }
};

struct Times {
  Seconds period;
  Seconds duration;  // 0: until Ctrl-C
  Seconds wait;      // for servers that do not report yet
};

Result<Times> parse_times(const ProbeOptions& options) {
  Times times;
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

// The probed servers: those of a lab, or real ones.
struct Target {
  std::string name;
  std::optional<lab::LabInfo> lab;
  topo::Graph graph;
  fabric::Routes routes;
  std::vector<std::uint32_t> seeds;  // by NodeId
};

Result<Target> target_of(const std::string& name) {
  REGATTA_TRY(lab, find_lab(name));
  REGATTA_TRY(graph, lab::graph_of(lab));
  fabric::Routes routes(graph);
  Target target{.name = name,
                .lab = lab,
                .graph = std::move(graph),
                .routes = std::move(routes),
                .seeds = {}};
  for (const topo::Node& node : target.graph.nodes)
    target.seeds.push_back(topo::hash_seed(name, node.name));
  return target;
}

Result<Target> find_target(const ProbeOptions& options) {
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
    return Target{.name = cluster.name,
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

Result<probe::ReporterListener> open_listener(const ProbeOptions& options, const Target& target,
                                              const probe::Matrix& matrix, Seconds period,
                                              const probe::Collector& collector) {
  probe::ExpectedReporters expected{
      .servers = {}, .period = period, .plan = plan_number(target.graph, matrix), .token = {}};
  std::vector<std::size_t> longest;
  for (std::size_t i = 0; i < collector.servers(); ++i) {
    expected.servers.push_back(target.graph.nodes[i].name);
    longest.push_back(collector.longest_line(NodeId{static_cast<int>(i)}));
  }
  REGATTA_TRY(token, probe::token_of_environment());
  expected.token = token;
  const std::string at = target.lab ? "unix:" + target.lab->folder + "/probe.sock" : options.listen;
  auto listener = probe::ReporterListener::open(at, std::move(expected), std::move(longest));
  if (!listener && target.lab && listener.error().code == Code::kConflict)
    return Error{Code::kConflict,
                 "lab " + target.name + ": another regatta probe is at work; end it first"};
  if (!listener && !target.lab)
    return Error{listener.error().code, "--listen " + listener.error().message};
  return listener;
}

Result<std::optional<HealerReporter>> open_healer(const ProbeOptions& options,
                                                  const Target& target) {
  if (!options.has_healer()) return std::optional<HealerReporter>();
  std::string path = options.heal_socket;
  if (path.empty() && target.lab) path = target.lab->folder + "/heal.sock";
  if (path.empty())
    return Error{Code::kInvalidInput,
                 "--heal: name the healer's socket with --heal-socket, as regatta heal --socket "
                 "has it"};
  REGATTA_TRY(opened, HealerReporter::open(path, target.graph));
  return std::optional<HealerReporter>(std::move(opened));
}

// One run of the command.
class Run {
 public:
  Run(const Target& target, probe::Matrix& matrix, const ProbeOptions& options, Times times)
      : target_(target),
        options_(options),
        times_(times),
        format_(target.graph, matrix,
                {.is_json = options.json, .lists_overlaps = options.lists_overlaps}),
        collector_(target.graph, matrix, times.period, options.has_healer()),
        roll_(collector_.servers(), std::max(Seconds{2}, 15 * times.period)),
        matrix_(matrix),
        gathers_(target.graph, target.routes, target.seeds, matrix) {}

  Status probe() {
    if (!options_.counters.empty()) {
      REGATTA_TRY(counters, ProbeCounters::open(options_.counters, target_.graph));
      counters_.emplace(std::move(counters));
    }
    REGATTA_TRY(healer, open_healer(options_, target_));
    if (healer && !healer->is_connected())
      fmt::print(stderr, "regatta: {}", report::healer_awaited_text(healer->path()));
    REGATTA_TRY(listener, open_listener(options_, target_, matrix_, times_.period, collector_));
    print_now(format_.coverage(probe::cover(target_.graph, matrix_)));
    LabProbers probers;  // end before the listener is shut
    if (target_.lab) {
      REGATTA_TRY_DO(
          probers.start(*target_.lab, target_.graph, matrix_, listener.address(), options_.period));
    } else {
      print_now(format_.listening(listener.address()));
    }
    REGATTA_TRY_DO(wait_until_begun(listener, probers));
    collector_.begin(os::system_now());
    has_begun_ = true;
    begin_ = os::monotonic_now();
    while (!stop_ && (times_.duration.value <= 0 || since_begin() < times_.duration)) {
      REGATTA_TRY_DO(gather(listener));
      diag::FaultChanges news = collector_.locate(os::system_now());
      if (target_.lab) REGATTA_TRY_DO(cabling_.check(*target_.lab, collector_, news));
      print_now(format_.faults(news, since_begin()));
      faults_ += static_cast<std::size_t>(std::ranges::count_if(news.begun, diag::is_fault));
      gathers_.update(news, collector_, listener, format_, since_begin());
      if (counters_) counters_->update(news, collector_, format_, since_begin());
      if (healer) {
        const std::string note = healer->report(news, collector_, os::monotonic_now());
        if (!note.empty()) fmt::print(stderr, "regatta: {}", note);
      }
      if (!target_.lab) continue;
      if (probers.ended().size() == probers.count())
        return Error{Code::kUnavailable,
                     "all probers have ended; the lab is down, or see what they printed"};
      for (const std::string& server : probers.restart_ended(os::monotonic_now()))
        print_now(format_.restarted(server, since_begin()));
    }
    print_now(format_.pairs(collector_));
    report::ProbeEventFormat::Totals totals{.probes = collector_.probes_sent(),
                                            .faults = faults_,
                                            .restarts = probers.restarts(),
                                            .time = since_begin(),
                                            .counters = {}};
    if (counters_) totals.counters = {counters_->stream().lines(), counters_->stream().left_out()};
    // By the paths that were measured meanwhile.
    print_now(format_.summary(probe::cover(target_.graph, matrix_), totals));
    return {};
  }

 private:
  Seconds since_begin() const { return os::monotonic_now() - begin_; }

  Status accept(NodeId server, std::string_view line) {
    REGATTA_TRY_DO(probe::is_evidence(line) ? gathers_.accept(server, line, collector_)
                                            : collector_.accept(server, line, os::system_now()));
    roll_.add_report(server, os::monotonic_now());
    return {};
  }

  Status gather(probe::ReporterListener& listener) {
    if (target_.lab) REGATTA_TRY_DO(carriers_.sample(*target_.lab, collector_));
    if (counters_) REGATTA_TRY_DO(counters_->read(collector_));
    Status status = listener.wait(
        kLook, [this](NodeId server, std::string_view line) { return accept(server, line); });
    if (!status) return status;
    for (const probe::RefusedReporter& one : listener.consume_refusals())
      print_now(format_.refusal(one, since_begin()));
    for (const NodeId server : listener.consume_arrivals())
      gathers_.request_carriers(server, listener);
    for (const probe::ReporterChange& one : roll_.update(os::monotonic_now()))
      if (has_begun_) print_now(format_.reporter_change(one, roll_, since_begin()));
    return {};
  }

  Status wait_until_begun(probe::ReporterListener& listener, LabProbers& probers) {
    begin_ = os::monotonic_now();
    const Seconds wait = target_.lab ? kBegins : times_.wait;
    Seconds told;
    std::size_t told_count = roll_.servers();
    while (!stop_ && !roll_.missing().empty()) {
      REGATTA_TRY_DO(gather(listener));
      if (roll_.reporting() != told_count && since_begin() - told >= kProgress) {
        print_now(format_.reporting(roll_));
        told = since_begin();
        told_count = roll_.reporting();
      }
      const auto ended = probers.ended();
      if (!ended.empty()) return silent(ended);
      if (since_begin() < wait) continue;
      if (target_.lab) return silent(names(roll_.missing()));
      // Two can measure each other; who waits without an end waits for them.
      if (roll_.reporting() >= 2) break;
      if (times_.duration.value > 0)
        return Error{Code::kUnavailable,
                     fmt::format("{} of {} servers report; start regatta-prober CLUSTER --server "
                                 "NAME --collector HOST:PORT on each",
                                 roll_.reporting(), roll_.servers())};
    }
    print_now(format_.reporting(roll_));
    return {};
  }

  std::vector<std::string> names(const std::vector<NodeId>& nodes) const {
    std::vector<std::string> all;
    all.reserve(nodes.size());
    for (const NodeId node : nodes)
      all.push_back(target_.graph.nodes[node.index()].name);
    return all;
  }
  static Error silent(const std::vector<std::string>& servers) {
    return {Code::kUnavailable,
            "prober of " + first_of(servers) + ": tells nothing; see what it printed"};
  }

  const Target& target_;
  const ProbeOptions& options_;
  const Times times_;
  const std::atomic<bool>& stop_ = watch_stop_signals();
  report::ProbeEventFormat format_;
  probe::Collector collector_;
  probe::ReporterStatus roll_;
  LabCarriers carriers_;
  LabCabling cabling_;
  std::optional<ProbeCounters> counters_;
  probe::Matrix& matrix_;
  ProbeEvidence gathers_;
  Seconds begin_;
  std::size_t faults_ = 0;  // that have begun
  bool has_begun_ = false;
};

Status run_probe(const ProbeOptions& options) {
  REGATTA_TRY(times, parse_times(options));
  REGATTA_TRY(target, find_target(options));
  const auto transport =
      options.transport == "rdma" ? probe::Transport::kRdma : probe::Transport::kUdp;
  probe::Matrix matrix =
      probe::plan_matrix(target.graph, target.routes, target.seeds, {.transport = transport});
  if (matrix.probes.empty())
    return Error{Code::kInvalidInput,
                 "cluster " + target.name + ": has no two NICs on one rail to probe between"};
  return Run(target, matrix, options, times).probe();
}

}  // namespace

void add_probe_command(CLI::App& app, int& exit_status) {
  const auto options = std::make_shared<ProbeOptions>();
  CLI::App* probe = add_command(
      app, "probe", "Probe every link in both directions and name the broken parts",
      "regatta lab up examples/cluster.yaml\n"
      "  regatta probe --lab lab-4x2 --duration 10s\n"
      "Inject faults meanwhile with regatta lab fault. On real servers, start on each one\n  "
      "regatta-prober cluster.yaml --server NAME --collector head-1:27899\nand on head-1:\n  "
      "regatta probe cluster.yaml --listen 27899\nProbes find lost packets, not lower rates "
      "(regatta lab fault slow): regatta rates\nprobe finds those. Counters of switches tell "
      "apart what looks the same to probes:\n  "
      "regatta probe cluster.yaml --listen 27899 --counters counters.csv",
      [=, &exit_status] {
        const Status status = run_probe(*options);
        exit_status = status ? 0 : report_error(status.error());
      });
  probe->add_option("CLUSTER", options->cluster, "Cluster file of a lab that is up, or of servers")
      ->check(not_empty());
  probe->add_option("--lab", options->lab, "Name of a lab that is up, instead of the cluster file")
      ->type_name("LAB")
      ->check(not_empty());
  probe
      ->add_option("--listen", options->listen,
                   "Real servers: the address where their probers report, PORT or ADDRESS:PORT")
      ->type_name("PLACE")
      ->check(not_empty());
  probe
      ->add_option("--transport", options->transport,
                   "With --listen: the transport of probes, udp or rdma")
      ->type_name("NAME")
      ->check(one_of({"udp", "rdma"}))
      ->capture_default_str();
  probe
      ->add_option("--wait", options->wait,
                   "With --listen: how long to wait for all servers to report, like 20s")
      ->type_name("TIME")
      ->check(not_empty());
  probe->add_option("--period", options->period, kProbePeriodHelp)
      ->type_name("TIME")
      ->capture_default_str();
  probe
      ->add_option("--duration", options->duration,
                   "Duration, like 10s; until Ctrl-C when left out")
      ->type_name("TIME")
      ->check(not_empty());
  probe->add_flag("--heal", options->heals,
                  "Report broken parts to regatta heal, which withdraws them");
  probe
      ->add_option("--heal-socket", options->heal_socket,
                   "The same, with the --socket of regatta heal")
      ->type_name("PATH")
      ->check(not_empty());
  probe
      ->add_option("--counters", options->counters,
                   "Counters and neighbors of switches as a collector writes them "
                   "(docs/formats/switch_counters.md): a file that grows, a pipe, or - for "
                   "standard input")
      ->type_name("FILE")
      ->check(not_empty());
  probe->add_flag("--coverage", options->lists_overlaps,
                  "Also list the links that probes alone cannot distinguish");
  probe->add_flag("--json", options->json, "Print a JSON object per event");
}

}  // namespace regatta::cli
