#include "regatta/app/cli/internal/heal_command.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <fmt/core.h>
#include <nlohmann/json.hpp>
#include <poll.h>
#include <unistd.h>

#include "regatta/app/cli/internal/arguments.h"
#include "regatta/app/cli/internal/find_lab.h"
#include "regatta/app/cli/internal/heal_supervisor.h"
#include "regatta/app/cli/internal/job_file.h"
#include "regatta/app/cli/internal/stop_signal.h"
#include "regatta/app/cli/internal/time_flag.h"
#include "regatta/app/report/network_report.h"
#include "regatta/base/core/json.h"
#include "regatta/base/core/text.h"
#include "regatta/base/core/units.h"
#include "regatta/base/os/clock.h"
#include "regatta/base/os/process.h"
#include "regatta/model/topo/graph.h"
#include "regatta/network/heal/command_switches.h"
#include "regatta/network/heal/event_socket.h"
#include "regatta/network/heal/event_text.h"
#include "regatta/network/heal/healer.h"
#include "regatta/network/heal/healer_state.h"
#include "regatta/network/heal/lab_switches.h"
#include "regatta/network/lab/lab.h"

namespace regatta::cli {
namespace {

struct HealOptions {
  std::string cluster;
  std::string lab;
  std::string socket;
  std::string clean = "5s";
  std::string clean_max = "10min";
  std::string withdraw_command;
  std::string return_command;
  bool dry_run = false;
  bool json = false;
  bool unsupervised = false;
  std::string supervised;
};

// The command line of the process that heals, after the program's name.
std::vector<std::string> arguments_of(const HealOptions& options, const Supervised& supervised) {
  std::vector<std::string> words = {"heal"};
  if (!options.cluster.empty()) words.push_back(options.cluster);
  for (const auto& [flag, value] :
       {std::pair("--lab", options.lab), std::pair("--socket", options.socket),
        std::pair("--clean", options.clean), std::pair("--clean-max", options.clean_max),
        std::pair("--withdraw-command", options.withdraw_command),
        std::pair("--return-command", options.return_command),
        std::pair("--supervised", to_string(supervised))})
    if (!value.empty()) words.push_back(std::string(flag) + "=" + value);
  if (options.dry_run) words.emplace_back("--dry-run");
  if (options.json) words.emplace_back("--json");
  return words;
}

// A flag's text as a time above 0.
Result<Seconds> time_of(const std::string& flag, const std::string& text) {
  REGATTA_TRY(time, time_flag(flag, text));
  if (!(time.value > 0)) return Error{Code::kInvalidInput, flag + ": must be above 0, as in 5s"};
  return time;
}

Result<heal::HealerOptions> healer_options(const HealOptions& options) {
  heal::HealerOptions out;
  REGATTA_TRY(clean, time_of("--clean", options.clean));
  REGATTA_TRY(clean_max, time_of("--clean-max", options.clean_max));
  if (clean_max < clean)
    return Error{Code::kInvalidInput, "--clean-max: must not be below --clean"};
  out.damping.clean = clean;
  out.damping.clean_max = clean_max;
  out.dry_run = options.dry_run;
  return out;
}

// The text has seconds since `began`, like that of `regatta probe`.
void print(const topo::Graph& graph, const heal::Event& event, Seconds began, bool as_json) {
  if (as_json) {
    fmt::print("{}\n", json_line(to_json(graph, event)));
  } else {
    fmt::print("{}", report::timed_line(event.at - began, to_text(graph, event)));
  }
  std::fflush(stdout);
}

std::string note_text(const heal::FaultReport& report) {
  return report.noted + (report.why.empty() ? "" : ": " + report.why) +
         "; nothing is withdrawn, people have to correct it";
}

// This process shares it with the one that watches it, its parent.
struct Supervision {
  Supervised shared;
  heal::SharedText state;
  pid_t parent = -1;
};

Result<std::optional<Supervision>> find_supervision(const HealOptions& options) {
  if (options.supervised.empty()) return std::optional<Supervision>();
  REGATTA_TRY(shared, parse_supervised(options.supervised));
  for (const int fd : {shared.listener, shared.state})
    if (::fcntl(fd, F_SETFD, FD_CLOEXEC) != 0)
      return Error{Code::kInvalidInput, "--supervised: is for regatta heal itself; leave it out"};
  return std::optional<Supervision>(
      {shared, heal::SharedText(os::UniqueFd(shared.state)), ::getppid()});
}

// The fabric to heal.
struct Fabric {
  const topo::Graph& graph;
  heal::Switches& switches;
  heal::Healer& healer;
  heal::EventSocket& event_socket;
  const HealOptions& options;
  const std::string& socket;
  std::optional<Supervision>& supervision;
  int end_fd = -1;  // readable when the fabric is gone; -1: never
};

// Waits until the healer has something to do or something arrives, at most half a second: a signal
// may have come before the wait. False when the fabric is gone.
bool wait_for_news(const Fabric& fabric) {
  constexpr double kLongest = 0.5;
  double limit = kLongest;
  if (const auto next = fabric.healer.next())
    limit = std::clamp((*next - os::monotonic_now()).value, 0.0, kLongest);
  std::array<pollfd, 3> waits{pollfd{fabric.switches.fd(), POLLIN, 0},
                              pollfd{fabric.event_socket.fd(), POLLIN, 0},
                              pollfd{fabric.end_fd, POLLIN, 0}};
  ::poll(waits.data(), waits.size(), static_cast<int>(limit * 1e3 + 1));
  return waits[2].revents == 0;
}

// Fails when another healer has the socket. `graph` and `healer` must outlive what is returned.
Result<heal::EventSocket> open_event_socket(const std::string& socket, const topo::Graph& graph,
                                            const heal::Healer& healer,
                                            const std::optional<Supervision>& supervision) {
  const int restarts = supervision ? supervision->shared.restarts : 0;
  const auto greeting = [&graph, &healer, restarts] {
    nlohmann::json held = held_to_json(graph, healer.held(), os::monotonic_now());
    held["restarts"] = restarts;
    return json_line(std::move(held));
  };
  if (!supervision) return heal::EventSocket::open(socket, greeting);
  return heal::EventSocket::share(os::UniqueFd(supervision->shared.listener), greeting);
}

// Begins with what a killed process knew, if there was one.
Result<std::vector<heal::Event>> start_healer(const Fabric& fabric, Seconds now) {
  if (!fabric.supervision || fabric.supervision->shared.restarts == 0)
    return fabric.healer.start(now);
  const Supervised& shared = fabric.supervision->shared;
  const auto text = fabric.supervision->state.read();
  auto before = text ? heal::parse_state(fabric.graph, *text) : text.error();
  if (!before) before = heal::HealerState{};
  REGATTA_TRY(events, fabric.healer.start(now, *before));
  heal::Event restarted{heal::EventKind::kRestarted, now, {}, {}, {}, {}};
  restarted.count = shared.restarts;
  restarted.message = fmt::format(
      "{} ended the healer; a new one goes on with {} (restart {})", os::signal_text(shared.signal),
      pluralized(before->damper.held.size(), "held fault"), shared.restarts);
  events.insert(events.begin(), std::move(restarted));
  return events;
}

// Writes down what the next process has to know, where that has changed.
class SharedState {
 public:
  explicit SharedState(const Fabric& fabric) : fabric_(fabric) {}

  Status update() {
    if (!fabric_.supervision) return {};
    std::string text = heal::state_text(fabric_.healer.state());
    if (text == written_) return {};
    written_ = std::move(text);
    return fabric_.supervision->state.write(written_);
  }

 private:
  const Fabric& fabric_;
  std::string written_;
};

Status heal_until_stopped(const Fabric& fabric) {
  const topo::Graph& graph = fabric.graph;
  heal::Healer& healer = fabric.healer;
  heal::EventSocket& event_socket = fabric.event_socket;
  const bool as_json = fabric.options.json;
  const bool is_first = !fabric.supervision || fabric.supervision->shared.restarts == 0;
  const Seconds now = os::monotonic_now();
  const Seconds began = fabric.supervision ? fabric.supervision->shared.began : now;
  SharedState shared_state(fabric);
  const auto publish = [&](const std::vector<heal::Event>& events) {
    for (const heal::Event& event : events) {
      event_socket.broadcast(json_line(to_json(graph, event)));
      print(graph, event, began, as_json);
    }
  };
  const std::atomic<bool>& stop = watch_stop_signals();
  REGATTA_TRY(first, start_healer(fabric, now));
  REGATTA_TRY_DO(shared_state.update());
  if (!as_json && is_first) {
    fmt::print("{}", report::healing_text(graph, fabric.socket, fabric.options.dry_run));
    std::fflush(stdout);
  }
  publish(first);
  while (!stop) {
    if (!wait_for_news(fabric)) return lab::gone(fabric.options.lab);
    for (const heal::FaultReport& report : event_socket.consume_reports(graph)) {
      if (!report.noted.empty()) healer.note(note_text(report), os::monotonic_now());
      for (const heal::Fault& fault : report.faults)
        healer.report(fault, report.why, os::monotonic_now(), report.is_probed);
      if (report.losses)
        healer.report_losses(*report.losses, os::monotonic_now(), report.losses_span);
    }
    REGATTA_TRY(events, healer.step(os::monotonic_now()));
    REGATTA_TRY_DO(shared_state.update());
    publish(events);
  }
  return {};
}

// The routes of a lab while this process looks after them: the lab does again when this ends.
struct RoutesTaken {
  RoutesTaken(const lab::LabInfo& from, heal::LinuxSwitches& of) : lab(from), switches(of) {}
  RoutesTaken(const RoutesTaken&) = delete;
  RoutesTaken& operator=(const RoutesTaken&) = delete;
  // The lab may have ended before: then there is nothing to hand back.
  ~RoutesTaken() {
    static_cast<void>(switches.remove_probe_paths().has_value());
    static_cast<void>(lab::set_converging(lab, true).has_value());
  }

  const lab::LabInfo& lab;
  heal::LinuxSwitches& switches;
};

// Rejects these commands in a lab, whose switches are reached without them.
Status check_no_commands(const HealOptions& options) {
  for (const auto& [flag, command] : {std::pair("--withdraw-command", &options.withdraw_command),
                                      std::pair("--return-command", &options.return_command)})
    if (!command->empty())
      return Error{Code::kInvalidInput,
                   fmt::format("{}: is for the switches of a cluster file, and those of a lab need "
                               "none; leave it out, or give a cluster file instead of --lab",
                               flag)};
  return {};
}

std::string socket_of(const HealOptions& options, const lab::LabInfo& lab) {
  return options.socket.empty() ? lab.folder + "/heal.sock" : options.socket;
}

Status heal_lab(const HealOptions& options, const heal::HealerOptions& healer_options) {
  REGATTA_TRY(supervision, find_supervision(options));
  REGATTA_TRY(lab, find_lab(options.lab));
  REGATTA_TRY(graph, lab::graph_of(lab));
  const std::string socket = socket_of(options, lab);
  REGATTA_TRY_DO(lab::enter_user_namespace(lab));
  if (supervision) REGATTA_TRY_DO(os::die_with(supervision->parent));
  const heal::FabricPaths paths(graph);
  REGATTA_TRY(switches, open_lab_switches(lab, graph, paths));
  REGATTA_TRY(holder, os::open_pidfd(lab.holder));
  heal::Healer healer(graph, paths, *switches, healer_options);
  REGATTA_TRY(event_socket, open_event_socket(socket, graph, healer, supervision));
  // Not before the socket is ours: another healer's routes are not to be handed back.
  std::optional<RoutesTaken> taken;
  if (!options.dry_run) {
    REGATTA_TRY_DO(lab::set_converging(lab, false));
    taken.emplace(lab, *switches);
    REGATTA_TRY_DO(switches->keep_probe_paths());
  }
  return heal_until_stopped(
      {graph, *switches, healer, event_socket, options, socket, supervision, holder.get()});
}

Status check_cluster_flags(const HealOptions& options) {
  if (options.withdraw_command.empty() || options.return_command.empty() ||
      options.socket.empty()) {
    return Error{Code::kInvalidInput,
                 "heal: the switches of a cluster file are reached by commands; give "
                 "--withdraw-command, --return-command and --socket, or name a lab with --lab"};
  }
  return check(heal::SwitchCommands{options.withdraw_command, options.return_command});
}

Status heal_cluster(const HealOptions& options, const heal::HealerOptions& healer_options) {
  REGATTA_TRY(supervision, find_supervision(options));
  REGATTA_TRY(cluster, load_cluster(options.cluster));
  const heal::SwitchCommands commands{options.withdraw_command, options.return_command};
  const topo::Graph graph = build_graph(cluster);
  const heal::FabricPaths paths(graph);
  heal::CommandSwitches switches(graph, paths, commands);
  heal::Healer healer(graph, paths, switches, healer_options);
  REGATTA_TRY(event_socket, open_event_socket(options.socket, graph, healer, supervision));
  return heal_until_stopped(
      {graph, switches, healer, event_socket, options, options.socket, supervision});
}

// Rejects wrong flags; returns the socket of reports.
Result<std::string> check_options(const HealOptions& options) {
  if (!options.lab.empty()) {
    REGATTA_TRY_DO(check_no_commands(options));
    REGATTA_TRY(lab, find_lab(options.lab));
    return socket_of(options, lab);
  }
  const auto cluster = load_cluster(options.cluster);
  if (!cluster) return cluster.error();
  REGATTA_TRY_DO(check_cluster_flags(options));
  return options.socket;
}

int run_heal(const HealOptions& options) {
  if (!options.lab.empty() && !options.cluster.empty()) {
    return report_error({Code::kInvalidInput,
                         "heal: a cluster file and --lab name two fabrics; leave out the file to "
                         "heal the lab, or --lab to heal switches by commands"});
  }
  if (options.lab.empty() && options.cluster.empty()) {
    return report_error(
        {Code::kInvalidInput, "heal: name a lab with --lab, or give a cluster file"});
  }
  const auto healer = healer_options(options);
  if (!healer) return report_error(healer.error());
  const auto socket = check_options(options);
  if (!socket) return report_error(socket.error());
  if (!options.unsupervised && options.supervised.empty()) {
    const auto ended = supervise_healer(
        *socket, [&](const Supervised& supervised) { return arguments_of(options, supervised); });
    return ended ? *ended : report_error(ended.error());
  }
  const Status status =
      options.lab.empty() ? heal_cluster(options, *healer) : heal_lab(options, *healer);
  return status ? 0 : report_error(status.error());
}

}  // namespace

void add_heal_command(CLI::App& app, int& exit_status) {
  const auto options = std::make_shared<HealOptions>();
  CLI::App* heal = add_command(
      app, "heal", "Take broken links and switches out of the routes, until Ctrl-C",
      "regatta heal --lab lab-4x2", [=, &exit_status] { exit_status = run_heal(*options); });
  heal->add_option("CLUSTER", options->cluster, "Cluster file, for switches reached by commands")
      ->check(not_empty());
  heal->add_option("--lab", options->lab, "Name of a lab that is up")
      ->type_name("LAB")
      ->check(not_empty());
  heal->add_option("--clean", options->clean,
                   "How long a part has to work before it is used again (5s)")
      ->type_name("TIME");
  heal->add_option("--clean-max", options->clean_max,
                   "Upper limit of --clean, which grows with each failure (10min)")
      ->type_name("TIME");
  heal->add_option("--socket", options->socket,
                   "Socket of reports and events (default: heal.sock in the lab's folder)")
      ->type_name("PATH")
      ->check(not_empty());
  heal->add_option("--withdraw-command", options->withdraw_command,
                   "Command for each next hop to withdraw: {switch} {link} {neighbor} {towards}")
      ->type_name("COMMAND")
      ->check(not_empty());
  heal->add_option("--return-command", options->return_command,
                   "Command for each next hop to return")
      ->type_name("COMMAND")
      ->check(not_empty());
  heal->add_flag("--dry-run", options->dry_run, "Print the actions without taking them");
  heal->add_flag("--json", options->json, "Print a JSON object per event, as for subscribers");
  heal->add_flag("--unsupervised", options->unsupervised,
                 "One process, without another one that starts it again when it is killed");
  heal->add_option("--supervised", options->supervised)->group("");
}

}  // namespace regatta::cli
