#include "regatta/app/cli/internal/heal_command.h"

#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "regatta/app/cli/internal/arguments.h"
#include "regatta/app/cli/internal/find_lab.h"
#include "regatta/app/cli/internal/heal_loop.h"
#include "regatta/app/cli/internal/heal_supervisor.h"
#include "regatta/app/cli/internal/job_file.h"
#include "regatta/app/cli/internal/time_flag.h"
#include "regatta/base/core/units.h"
#include "regatta/base/os/process.h"
#include "regatta/model/topo/graph.h"
#include "regatta/network/heal/command_switches.h"
#include "regatta/network/heal/healer.h"
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
  bool hands_back = false;
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

// Gives the routes of a lab back to the lab, and removes what probes had of their own.
Status hand_back(const lab::LabInfo& lab, heal::LinuxSwitches& switches) {
  const Status removed = switches.remove_probe_paths();
  const Status converges = lab::set_converging(lab, true);
  return removed ? converges : removed;
}

// The routes of a lab while this process looks after them: the lab does again when this ends.
struct RoutesTaken {
  RoutesTaken(const lab::LabInfo& from, heal::LinuxSwitches& of) : lab(from), switches(of) {}
  RoutesTaken(const RoutesTaken&) = delete;
  RoutesTaken& operator=(const RoutesTaken&) = delete;
  // The lab may have ended before: then there is nothing to hand back.
  ~RoutesTaken() { static_cast<void>(hand_back(lab, switches).has_value()); }

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

// The fabric to heal: a lab, or a cluster whose switches are reached by commands.
struct Target {
  std::optional<lab::LabInfo> lab;
  topo::Cluster cluster;
  std::string socket;  // of reports
};

Status check_cluster_flags(const HealOptions& options) {
  if (options.withdraw_command.empty() || options.return_command.empty() ||
      options.socket.empty()) {
    return Error{Code::kInvalidInput,
                 "heal: the switches of a cluster file are reached by commands; give "
                 "--withdraw-command, --return-command and --socket, or name a lab with --lab"};
  }
  return check(heal::SwitchCommands{options.withdraw_command, options.return_command});
}

// Rejects wrong flags.
Result<Target> find_target(const HealOptions& options) {
  if (!options.lab.empty()) {
    REGATTA_TRY_DO(check_no_commands(options));
    REGATTA_TRY(lab, find_lab(options.lab));
    std::string socket = options.socket.empty() ? lab.folder + "/heal.sock" : options.socket;
    return Target{.lab = std::move(lab), .cluster = {}, .socket = std::move(socket)};
  }
  REGATTA_TRY(cluster, load_cluster(options.cluster));
  REGATTA_TRY_DO(check_cluster_flags(options));
  return Target{.lab = {}, .cluster = std::move(cluster), .socket = options.socket};
}

Status heal_lab(const HealOptions& options, const heal::HealerOptions& healer_options,
                const Target& target) {
  const lab::LabInfo& lab = *target.lab;
  REGATTA_TRY(supervision, find_supervision(options.supervised));
  REGATTA_TRY(graph, lab::graph_of(lab));
  REGATTA_TRY_DO(lab::enter_user_namespace(lab));
  if (supervision) REGATTA_TRY_DO(os::die_with(supervision->parent));
  const heal::FabricPaths paths(graph);
  REGATTA_TRY(switches, open_lab_switches(lab, graph, paths));
  REGATTA_TRY(holder, os::open_pidfd(lab.holder));
  heal::Healer healer(graph, paths, *switches, healer_options);
  REGATTA_TRY(event_socket, open_event_socket(target.socket, graph, healer, supervision));
  // Not before the socket is ours: another healer's routes are not to be handed back.
  std::optional<RoutesTaken> taken;
  if (!options.dry_run) {
    REGATTA_TRY_DO(lab::set_converging(lab, false));
    taken.emplace(lab, *switches);
    REGATTA_TRY_DO(switches->keep_probe_paths());
  }
  return heal_until_stopped({.graph = graph,
                             .switches = *switches,
                             .healer = healer,
                             .event_socket = event_socket,
                             .socket = target.socket,
                             .supervision = supervision,
                             .is_dry_run = options.dry_run,
                             .as_json = options.json,
                             .lab = options.lab,
                             .end_fd = holder.get()});
}

Status heal_cluster(const HealOptions& options, const heal::HealerOptions& healer_options,
                    const Target& target) {
  REGATTA_TRY(supervision, find_supervision(options.supervised));
  const heal::SwitchCommands commands{options.withdraw_command, options.return_command};
  const topo::Graph graph = build_graph(target.cluster);
  const heal::FabricPaths paths(graph);
  heal::CommandSwitches switches(graph, paths, commands);
  heal::Healer healer(graph, paths, switches, healer_options);
  REGATTA_TRY(event_socket, open_event_socket(target.socket, graph, healer, supervision));
  return heal_until_stopped({.graph = graph,
                             .switches = switches,
                             .healer = healer,
                             .event_socket = event_socket,
                             .socket = target.socket,
                             .supervision = supervision,
                             .is_dry_run = options.dry_run,
                             .as_json = options.json});
}

// Does what a killed healer of a lab has left undone: nothing where the lab is gone.
Status hand_back_lab(const std::string& name) {
  const auto lab = lab::find(name);
  if (!lab) return lab.error().code == Code::kNotFound ? Status() : lab.error();
  REGATTA_TRY(graph, lab::graph_of(*lab));
  REGATTA_TRY_DO(lab::enter_user_namespace(*lab));
  const heal::FabricPaths paths(graph);
  REGATTA_TRY(switches, open_lab_switches(*lab, graph, paths));
  return hand_back(*lab, *switches);
}

// The same by a process of its own, because one with threads enters no user namespace.
Status hand_back_apart(const HealOptions& options) {
  constexpr Seconds kLongest{10};
  if (options.lab.empty() || options.dry_run) return {};
  REGATTA_TRY(folder, os::executable_folder());
  REGATTA_TRY(pid, os::spawn({folder + "/regatta", "heal", "--lab=" + options.lab, "--hand-back"},
                             {.environment = {}, .own_group = true}));
  auto end = os::wait_for(pid, kLongest);
  if (!end) static_cast<void>(os::terminate(pid).has_value());
  if (end && end->is_success()) {
    fmt::print(stderr,
               "regatta: lab {}: the healer was killed; its rules and tables for probes are "
               "removed\n",
               options.lab);
    return {};
  }
  return Error{Code::kUnavailable,
               fmt::format("lab {}: rules and tables for probes that the killed healer left are "
                           "not removed ({}); start regatta heal --lab {} again and end it",
                           options.lab, end ? to_string(*end) : end.error().message, options.lab)};
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
  if (options.hands_back) {
    const Status done = hand_back_lab(options.lab);
    return done ? 0 : report_error(done.error());
  }
  const auto healer = healer_options(options);
  if (!healer) return report_error(healer.error());
  const auto target = find_target(options);
  if (!target) return report_error(target.error());
  if (!options.unsupervised && options.supervised.empty()) {
    const auto ended = supervise_healer(
        target->socket,
        [&](const Supervised& supervised) { return arguments_of(options, supervised); },
        [&] { return hand_back_apart(options); });
    return ended ? *ended : report_error(ended.error());
  }
  const Status status =
      target->lab ? heal_lab(options, *healer, *target) : heal_cluster(options, *healer, *target);
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
  heal->add_flag("--hand-back", options->hands_back)->group("");
}

}  // namespace regatta::cli
