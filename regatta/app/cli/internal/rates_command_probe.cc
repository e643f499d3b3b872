// `regatta rates probe`: measures the rates of all links and names the slow ones.
#include <algorithm>
#include <atomic>
#include <csignal>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "regatta/app/cli/internal/arguments.h"
#include "regatta/app/cli/internal/job_file.h"
#include "regatta/app/cli/internal/pluralized.h"
#include "regatta/app/cli/internal/print_now.h"
#include "regatta/app/cli/internal/rates_command.h"
#include "regatta/app/cli/internal/rates_fabric.h"
#include "regatta/app/cli/internal/stop_signal.h"
#include "regatta/app/cli/internal/time_flag.h"
#include "regatta/app/report/network_report.h"
#include "regatta/base/os/clock.h"
#include "regatta/base/os/process.h"
#include "regatta/network/fabric/routes.h"
#include "regatta/network/link_rates/port_discovery.h"
#include "regatta/network/link_rates/rate_plan.h"
#include "regatta/network/link_rates/rate_session.h"
#include "regatta/network/probe/handshake.h"
#include "regatta/network/probe/reporter_listener.h"

namespace regatta::cli {
namespace {

constexpr Seconds kOrderDelay{0.001};
constexpr Seconds kTraceDelay{0.01};
constexpr Seconds kProgressPeriod{1};
constexpr TimeRange kMeasuringTimes{{1}, {86400}, "60s"};
constexpr TimeRange kAgentWait{{0.1}, {86400}, "20s"};
constexpr int kSeparatingRounds = 3;
constexpr std::size_t kTogetherMost = 32;  // trains of real servers

struct RatesProbeOptions {
  std::string cluster;
  std::string lab;
  std::string listen;
  std::string share = "5%";
  std::string slow_below = "80%";
  std::string limit = "60s";
  std::string wait;
  std::string counters;
  int trains = 3;
  bool learns_paths = false;
  bool lists_all = false;
  bool json = false;
};

Result<double> share_flag(const std::string& flag, const std::string& text, double least,
                          double most) {
  const auto share = parse_ratio(text);
  if (!share || *share < least || *share > most)
    return Error{Code::kInvalidInput,
                 fmt::format("{}: '{}' is not from {:g}% to {:g}%; give one like {:g}%", flag, text,
                             100 * least, 100 * most, 100 * std::min(most, std::max(least, 0.05)))};
  return *share;
}

// The agents of a lab's servers; ends them with itself.
class LabAgents {
 public:
  LabAgents() = default;
  LabAgents(const LabAgents&) = delete;
  LabAgents& operator=(const LabAgents&) = delete;
  ~LabAgents() {
    for (const pid_t pid : agents_)
      static_cast<void>(os::send_signal(pid, SIGTERM).has_value());
    for (const pid_t pid : agents_)
      static_cast<void>(os::terminate(pid, Seconds{0.5}).has_value());
  }

  Status start(const lab::LabInfo& lab, const std::string& controller) {
    REGATTA_TRY(folder, os::executable_folder());
    for (const lab::LabServer& server : lab.servers) {
      REGATTA_TRY(pid, lab::spawn(lab, server.name,
                                  {folder + "/regatta", "rates", "serve", "--server", server.name,
                                   "--controller", controller},
                                  {}));
      agents_.push_back(pid);
    }
    return {};
  }

 private:
  std::vector<pid_t> agents_;
};

// One run of the command.
class RatesRun {
 public:
  RatesRun(const RatesFabric& fabric, const RatesProbeOptions& options,
           const link_rates::RateSessionOptions& session_options, Seconds limit, Seconds wait)
      : fabric_(fabric),
        options_(options),
        limit_(limit),
        wait_(wait),
        session_options_(session_options),
        routes_(fabric.graph),
        format_(fabric.graph, options.json) {}

  // Whether a link is slow.
  Result<bool> run(const link_rates::SwitchCounterTotals* counters) {
    link_rates::RatePlan plan = link_rates::plan_rates(fabric_.graph, routes_, fabric_.seeds);
    if (plan.paths.empty())
      return Error{Code::kInvalidInput,
                   "cluster " + fabric_.name + ": has no two NICs on one rail to measure between"};
    REGATTA_TRY(opened, open_listener());
    listener_.emplace(std::move(opened));
    LabAgents agents;  // end before the listener is shut
    if (fabric_.lab)
      REGATTA_TRY_DO(agents.start(*fabric_.lab, listener_->address()));
    else
      print_now(format_.listening(listener_->address()));
    REGATTA_TRY_DO(wait_for_agents());
    if (options_.learns_paths || !fabric_.lab) {
      REGATTA_TRY(learned, learn_plan());
      plan = std::move(learned);
    }
    print_now(format_.plan(plan, session_options_.share));
    session_.emplace(fabric_.graph, routes_, std::move(plan),
                     static_cast<std::uint64_t>(os::system_ns()), session_options_);
    for (std::size_t i = 0; i < arrived_.size(); ++i)
      if (arrived_[i]) session_->add_agent(NodeId{static_cast<int>(i)}, os::monotonic_now());
    begin_ = os::monotonic_now();
    REGATTA_TRY_DO(measure());
    // Links that look alike so far get trains that separate them.
    for (int round = 0; round < kSeparatingRounds && session_->add_separators(); ++round)
      REGATTA_TRY_DO(measure());
    return tell(counters);
  }

 private:
  Seconds since_begin() const { return os::monotonic_now() - begin_; }

  std::size_t servers() const {
    return static_cast<std::size_t>(
        std::ranges::count(fabric_.graph.nodes, topo::NodeKind::kServer, &topo::Node::kind));
  }

  Result<probe::ReporterListener> open_listener() const {
    probe::ExpectedReporters expected{.servers = {},
                                      .period = link_rates::kAgentPeriod,
                                      .plan = link_rates::kAgentPlan,
                                      .token = {}};
    for (std::size_t i = 0; i < servers(); ++i)  // servers are the first nodes
      expected.servers.push_back(fabric_.graph.nodes[i].name);
    REGATTA_TRY(token, probe::token_of_environment());
    expected.token = token;
    const std::string at =
        fabric_.lab ? "unix:" + fabric_.lab->folder + "/rates.sock" : options_.listen;
    auto opened = probe::ReporterListener::open(
        at, std::move(expected),
        std::vector<std::size_t>(servers(), link_rates::kAgentReportBytesMost));
    if (!opened && fabric_.lab && opened.error().code == Code::kConflict)
      return Error{Code::kConflict, "lab " + fabric_.name +
                                        ": another regatta rates probe is at work; end it first"};
    return opened;
  }

  Status accept(NodeId server, std::string_view line) {
    const Seconds now = os::monotonic_now();
    if (session_) return session_->accept(server, line, now);
    if (discovery_) return discovery_->accept(server, line, now);
    return {};
  }

  Status gather(Seconds delay = kOrderDelay) {
    REGATTA_TRY_DO(listener_->wait(
        delay, [this](NodeId server, std::string_view line) { return accept(server, line); }));
    arrived_.resize(servers());
    for (const NodeId server : listener_->consume_arrivals()) {
      arrived_[server.index()] = true;
      if (session_) session_->add_agent(server, os::monotonic_now());
    }
    for (const probe::RefusedReporter& one : listener_->consume_refusals())
      fmt::print(stderr, "regatta: {} is refused: {}\n", one.from, one.why);
    return {};
  }

  std::size_t agents() const {
    return static_cast<std::size_t>(std::ranges::count(arrived_, true));
  }

  Status wait_for_agents() {
    const Seconds begun = os::monotonic_now();
    Seconds told = begun;
    while (!stop_ && agents() < servers()) {
      REGATTA_TRY_DO(gather());
      const Seconds now = os::monotonic_now();
      if (now - begun > wait_) break;
      if (now - told < kProgressPeriod) continue;
      print_now(format_.reporting(agents(), servers()));
      told = now;
    }
    if (agents() >= 2 || stop_) return {};
    return Error{Code::kUnavailable,
                 fmt::format("{} of {} servers report; start regatta rates serve --server NAME "
                             "--controller HOST:PORT on each",
                             agents(), servers())};
  }

  // Traces flows until enough of them cross each link.
  Result<link_rates::RatePlan> learn_plan() {
    discovery_.emplace(fabric_.graph, routes_);
    for (std::size_t i = 0; i < arrived_.size(); ++i)
      if (arrived_[i]) discovery_->add_agent(NodeId{static_cast<int>(i)});
    begin_ = os::monotonic_now();
    while (!stop_ && !discovery_->is_done() && since_begin() < limit_) {
      for (const auto& [server, line] : discovery_->due_orders(os::monotonic_now()))
        listener_->send(server, line);
      REGATTA_TRY_DO(gather(kTraceDelay));
    }
    print_now(format_.learned(*discovery_, since_begin()));
    if (discovery_->paths().empty() && !stop_)
      return Error{Code::kUnavailable,
                   "no path is known: routers must answer traceroutes with the address of the port "
                   "at which a packet arrives; see whether they limit these answers"};
    return link_rates::plan_rates(fabric_.graph, discovery_->paths());
  }

  Status measure() {
    Seconds told = since_begin();
    while (!stop_ && !session_->is_done() && since_begin() < limit_) {
      for (const auto& [server, line] : session_->due_orders(os::monotonic_now()))
        listener_->send(server, line);
      REGATTA_TRY_DO(gather());
      if (since_begin() - told < kProgressPeriod) continue;
      told = since_begin();
      print_now(format_.progress(session_->arrived(), session_->paths(),
                                 session_->busy_links().size(), told));
    }
    return {};
  }

  Result<bool> tell(const link_rates::SwitchCounterTotals* counters) {
    const Seconds time = since_begin();
    for (const std::string& failure : session_->failures())
      fmt::print(stderr, "regatta: {}\n", failure);
    const auto measurements = session_->measurements();
    const link_rates::RateVerdicts verdicts = session_->verdicts();
    for (const link_rates::SlowLink& slow : verdicts.slow)
      print_now(
          format_.slow(slow, measurements, counters ? &counters->of(slow.link) : nullptr, time));
    if (options_.lists_all || options_.json) print_now(format_.rates(verdicts.links));
    print_now(format_.summary(verdicts, {.trains = session_->arrived(),
                                         .busy_links = session_->busy_links().size(),
                                         .largest_share = session_->largest_share(time),
                                         .time = time}));
    if (session_->arrived() == 0 && !stop_)
      return Error{Code::kUnavailable,
                   session_->busy_links().empty()
                       ? "no train arrived; see regatta probe for broken links"
                       : "all links carry other traffic; try again while they are idle, or with a "
                         "longer --limit"};
    return !verdicts.slow.empty();
  }

  const RatesFabric& fabric_;
  const RatesProbeOptions& options_;
  const Seconds limit_;
  const Seconds wait_;
  const std::atomic<bool>& stop_ = watch_stop_signals();
  const link_rates::RateSessionOptions session_options_;
  fabric::Routes routes_;
  std::optional<link_rates::PortDiscovery> discovery_;
  std::optional<link_rates::RateSession> session_;
  report::RateEventFormat format_;
  std::optional<probe::ReporterListener> listener_;
  std::vector<bool> arrived_;  // by server: its agent was there
  Seconds begin_;
};

Result<bool> run(const RatesProbeOptions& options) {
  REGATTA_TRY(share, share_flag("--share", options.share, 0.001, 0.5));
  REGATTA_TRY(slow_below, share_flag("--slow-below", options.slow_below, 0.05, 0.95));
  REGATTA_TRY(limit, time_flag("--limit", options.limit, kMeasuringTimes));
  REGATTA_TRY(
      wait, time_flag("--wait", options.wait.empty() ? kAgentWait.like : options.wait, kAgentWait));
  if (!options.lab.empty() && !options.listen.empty())
    return Error{Code::kInvalidInput,
                 "--listen: is for real servers; give their cluster file instead of --lab"};
  if (options.lab.empty() && !options.cluster.empty() && options.listen.empty())
    return Error{Code::kInvalidInput,
                 "--listen is missing: give the address where real servers report, like 27899, or "
                 "name a lab with --lab instead of the cluster file"};
  REGATTA_TRY(fabric, find_rates_fabric(options.cluster, options.lab));
  std::optional<link_rates::SwitchCounterTotals> counters;
  if (!options.counters.empty()) {
    counters.emplace(fabric.graph);
    REGATTA_TRY_DO(read_switch_counters(options.counters, *counters));
  }
  // The switches of a lab share the cores of one machine.
  const std::size_t together = fabric.lab ? 1 : kTogetherMost;
  return RatesRun(fabric, options,
                  {.share = share,
                   .slow_below = slow_below,
                   .trains = options.trains,
                   .together = together},
                  limit, wait)
      .run(counters ? &*counters : nullptr);
}

}  // namespace

void add_rates_probe(CLI::App& rates, int& exit_status) {
  const auto options = std::make_shared<RatesProbeOptions>();
  CLI::App* command = add_command(
      rates, "probe", "Measure the rate of every idle link and name the slow ones",
      "regatta lab up examples/cluster.yaml\n"
      "  regatta lab fault slow leaf0-spine1 30Mbps\n"
      "  regatta rates probe --lab lab-4x2\n"
      "On real servers, start on each one\n"
      "  regatta rates serve --server NAME --controller head-1:27899\nand on head-1:\n"
      "  regatta rates probe cluster.yaml --listen 27899\nShort trains of packets go over idle "
      "links only. The exit status is 1 if a link is slow.",
      [=, &exit_status] {
        const auto is_slow = run(*options);
        exit_status = is_slow ? (*is_slow ? 1 : 0) : report_error(is_slow.error());
      });
  command->add_option("CLUSTER", options->cluster, "Cluster file of real servers")
      ->check(not_empty());
  command
      ->add_option("--lab", options->lab, "Name of a lab that is up, instead of the cluster file")
      ->type_name("LAB")
      ->check(not_empty());
  command
      ->add_option("--listen", options->listen,
                   "Real servers: the address where they report, PORT or ADDRESS:PORT")
      ->type_name("PLACE")
      ->check(not_empty());
  command
      ->add_option("--share", options->share,
                   "Share of a link's time that trains may take, from 0.1% to 50%")
      ->type_name("SHARE")
      ->capture_default_str();
  command
      ->add_option("--slow-below", options->slow_below,
                   "Share of its described rate below which a link is slow")
      ->type_name("SHARE")
      ->capture_default_str();
  command
      ->add_option("--trains", options->trains,
                   "Trains over a path whose rate no verdict explains, 1 to 50")
      ->type_name("N")
      ->check(whole_number(1, 50))
      ->capture_default_str();
  command
      ->add_option("--limit", options->limit,
                   "End after this time, also while links are busy; from 1s on")
      ->type_name("TIME")
      ->capture_default_str();
  command
      ->add_option("--wait", options->wait, "How long to wait for all servers to report, like 20s")
      ->type_name("TIME")
      ->check(not_empty());
  command
      ->add_option("--counters", options->counters,
                   "Counters of switches to set beside the verdicts (docs/formats/"
                   "switch_counters.md)")
      ->type_name("FILE")
      ->check(not_empty());
  command->add_flag(
      "--learn-paths", options->learns_paths,
      "Choose source ports by traces, not by the hash of the lab's switches; always so "
      "with --listen");
  command->add_flag("--all", options->lists_all, "Also list the rates of all links");
  command->add_flag("--json", options->json, "Print a JSON object per event");
}

}  // namespace regatta::cli
