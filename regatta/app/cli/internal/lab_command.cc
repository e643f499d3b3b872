#include "regatta/app/cli/internal/lab_command.h"

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "regatta/app/cli/internal/arguments.h"
#include "regatta/app/cli/internal/find_lab.h"
#include "regatta/app/cli/internal/job_file.h"
#include "regatta/app/report/network_report.h"
#include "regatta/base/core/text.h"
#include "regatta/base/core/units.h"
#include "regatta/base/os/process.h"
#include "regatta/network/lab/lab.h"

namespace regatta::cli {
namespace {

int finish(const Status& status) {
  return status ? 0 : report_error(as_input(status.error()));
}

// A lab is named by its name or by the file it was built from.
Result<std::string> lab_name(const std::string& name_or_file) {
  std::error_code ignored;
  const bool is_path = name_or_file.find_first_of("/.") != std::string::npos;
  if (!is_path && !std::filesystem::is_regular_file(name_or_file, ignored)) return name_or_file;
  REGATTA_TRY(cluster, load_cluster(name_or_file));
  return cluster.name;
}

// The lab that was named, or the only one that is up.
Result<lab::LabInfo> choose_lab(const std::string& name_or_file) {
  if (!name_or_file.empty()) {
    REGATTA_TRY(name, lab_name(name_or_file));
    return find_lab(name);
  }
  const auto labs = lab::list();
  if (labs.size() == 1) return labs.front();
  if (labs.empty()) {
    return Error{Code::kInvalidInput, "no lab is up; start one with regatta lab up CLUSTER"};
  }
  std::vector<std::string> names;
  names.reserve(labs.size());
  for (const lab::LabInfo& lab : labs)
    names.push_back(lab.name);
  return Error{Code::kInvalidInput,
               "several labs are up; name one with --lab: " + join(names, ", ")};
}

struct LabOptions {
  std::string lab;
  std::string cluster;
  std::string target;
  std::string amount;
  std::vector<std::string> command;
  bool all = false;
  bool json = false;
};

int run_up(const LabOptions& options) {
  const auto cluster = load_cluster(options.cluster);
  if (!cluster) return report_error(cluster.error());
  const auto lab = lab::up(*cluster);
  if (!lab) return report_error(lab.error());
  if (options.json) {
    fmt::print("{}\n", report::lab_status_json(*lab, {}, {}).dump(2));
    return 0;
  }
  fmt::print("{}", report::lab_up_text(*lab));
  return 0;
}

int run_down(const LabOptions& options) {
  if (options.all == !options.lab.empty()) {
    return report_error(
        {Code::kInvalidInput, "lab down: name a lab or its cluster file, or give --all"});
  }
  std::vector<std::string> names;
  if (options.all) {
    for (const lab::LabInfo& lab : lab::list())
      names.push_back(lab.name);
  } else {
    const auto name = lab_name(options.lab);
    if (!name) return report_error(name.error());
    names.push_back(*name);
  }
  int worst = 0;
  for (const std::string& name : names) {
    const Status status = lab::down(name);
    if (!status) worst = report_error(as_input(status.error()));
    if (status && !options.json) fmt::print("{}", report::lab_down_text(name));
  }
  if (names.empty() && !options.json) fmt::print("{}", report::lab_list_text({}));
  if (options.json && worst == 0) fmt::print("{}\n", report::lab_down_json(names).dump(2));
  return worst;
}

Result<report::RunningLab> inspect_lab(const lab::LabInfo& lab) {
  REGATTA_TRY(graph, lab::graph_of(lab));
  REGATTA_TRY(links, lab::link_states(lab));
  const auto holder = os::read_process(lab.holder);
  if (!holder) return lab::gone(lab.name);
  return report::RunningLab{
      .name = lab.name,
      .servers = lab.servers.size(),
      .switches = graph.nodes.size() - lab.servers.size(),
      .faults = static_cast<std::size_t>(std::ranges::count_if(links, &lab::LinkState::has_fault)),
      .age = os::age_of(*holder)};
}

// Lists the labs that answer, and reports an error for each other one.
int run_ls(const LabOptions& options) {
  std::vector<report::RunningLab> labs;
  int worst = 0;
  for (const lab::LabInfo& lab : lab::list()) {
    auto one = inspect_lab(lab);
    if (one)
      labs.push_back(*std::move(one));
    else
      worst = report_error(one.error());
  }
  fmt::print("{}", options.json ? report::lab_list_json(labs).dump(2) + "\n"
                                : report::lab_list_text(labs));
  return worst;
}

int run_status(const LabOptions& options) {
  std::vector<lab::LabInfo> labs = lab::list();
  if (!options.lab.empty()) {
    const auto lab = choose_lab(options.lab);
    if (!lab) return report_error(lab.error());
    labs = {*lab};
  }
  nlohmann::json all = nlohmann::json::array();
  for (const lab::LabInfo& lab : labs) {
    const auto links = lab::link_states(lab);
    if (!links) return report_error(links.error());
    const auto processes = lab::processes(lab);
    if (!processes) return report_error(processes.error());
    all.push_back(report::lab_status_json(lab, *links, *processes));
    if (!options.json) std::fputs(report::lab_status_text(lab, *links, *processes).c_str(), stdout);
  }
  if (options.json) fmt::print("{}\n", nlohmann::json{{"labs", all}}.dump(2));
  if (!options.json && labs.empty()) fmt::print("{}", report::lab_list_text({}));
  return 0;
}

int run_exec(const LabOptions& options) {
  const auto lab = choose_lab(options.lab);
  if (!lab) return report_error(lab.error());
  const auto pid = lab::spawn(*lab, options.target, options.command, {});
  if (!pid) return report_error(as_input(pid.error()));
  // Ctrl-C at the terminal is for the command; this process stays to report how it ended.
  std::signal(SIGINT, SIG_IGN);
  std::signal(SIGQUIT, SIG_IGN);
  const auto state = os::wait_for(*pid);
  return state ? state->shell_status() : report_error(state.error());
}

Result<lab::Fault> to_fault(const std::string& kind, const LabOptions& options) {
  lab::Fault fault;
  fault.target = options.target;
  if (kind == "slow") {
    fault.kind = lab::FaultKind::kLinkSlow;
    const auto rate = parse_bytes_per_second(options.amount);
    if (!rate) return Error{rate.error().code, "RATE: " + rate.error().message};
    fault.rate = *rate;
  } else if (kind == "drop") {
    fault.kind = lab::FaultKind::kLinkDrop;
    const auto share = parse_ratio(options.amount);
    if (!share) return Error{share.error().code, "SHARE: " + share.error().message};
    fault.drop_share = *share;
  } else if (kind == "swap") {
    fault.kind = lab::FaultKind::kLinkSwap;
    fault.other = options.amount;
  } else if (kind == "stop") {
    fault.kind = lab::FaultKind::kServerStop;
  } else if (kind == "kill") {
    fault.kind = lab::FaultKind::kServerKill;
  }
  return fault;
}

int run_fault(const std::string& kind, const LabOptions& options) {
  const auto lab = choose_lab(options.lab);
  if (!lab) return report_error(lab.error());
  Status status;
  if (kind == "clear") {
    status = lab::clear(*lab, options.target);
  } else {
    const auto fault = to_fault(kind, options);
    status = fault ? lab::inject(*lab, *fault) : Status(fault.error());
  }
  const report::LabFaultChange change{
      .lab = lab->name, .kind = kind, .target = options.target, .amount = options.amount};
  if (status)
    fmt::print("{}", options.json ? report::lab_fault_json(change).dump(2) + "\n"
                                  : report::lab_fault_text(change));
  return finish(status);
}

using Shared = std::shared_ptr<LabOptions>;

CLI::Option* add_lab_option(CLI::App& command, LabOptions& options) {
  return command.add_option("--lab", options.lab, "Name or cluster file, when several labs are up")
      ->type_name("LAB")
      ->check(not_empty());
}

void add_fault_commands(CLI::App& lab, const Shared& options, int& exit_status) {
  CLI::App* fault =
      lab.add_subcommand("fault", "Inject faults into links and servers, and clear them");
  fault->footer(
      "Example:\n  regatta lab fault down s1.nic0-leaf0\n  regatta lab fault clear\n"
      "The links have the names that regatta lab status prints.");
  fault->require_subcommand(1);
  struct Kind {
    const char* name;
    const char* help;
    const char* example;
    const char* target;
    const char* amount;
    const char* amount_help;
  };
  const std::vector<Kind> kinds = {
      {"down", "Remove the carrier of a link", "regatta lab fault down leaf0-spine1", "LINK", "",
       ""},
      {"slow", "Shape a link to another rate, both directions",
       "regatta lab fault slow s0.nic0-leaf0 10Mbps", "LINK", "RATE", "Like 10Mbps or 2MB/s"},
      {"drop", "Drop a share of a link's packets, both directions",
       "regatta lab fault drop leaf0-spine0 5%", "LINK", "SHARE", "Like 5% or 0.05"},
      {"swap", "Plug two cables in at each other's port, at their far ends",
       "regatta lab fault swap leaf0-spine0 leaf1-spine0", "LINK", "OTHER", "The other link"},
      {"stop", "Stop every process of a server, like a hang", "regatta lab fault stop s2", "SERVER",
       "", ""},
      {"kill", "Kill every process of a server, like a power loss", "regatta lab fault kill s2",
       "SERVER", "", ""},
      {"clear", "Clear the faults of a link or server, or all of them",
       "regatta lab fault clear leaf0-spine1", "TARGET", "", ""}};
  for (const Kind& kind : kinds) {
    const std::string name = kind.name;
    CLI::App* command = add_command(*fault, name, kind.help, kind.example,
                                    [=, &exit_status] { exit_status = run_fault(name, *options); });
    const bool clears = name == "clear";
    auto* target = command->add_option(
        kind.target, options->target,
        clears ? "Link or server; all of them when left out" : "Name as in regatta lab status");
    if (!clears) target->required();
    if (*kind.amount != '\0') {
      command->add_option(kind.amount, options->amount, kind.amount_help)->required();
    }
    add_lab_option(*command, *options);
    command->add_flag("--json", options->json, "Print JSON");
  }
}

}  // namespace

void add_lab_command(CLI::App& app, int& exit_status) {
  const auto options = std::make_shared<LabOptions>();
  CLI::App* lab = app.add_subcommand(
      "lab", "Emulate a cluster on this machine: a network namespace per server and switch");
  lab->footer(
      "Example:\n  regatta lab up examples/cluster.yaml\n  regatta lab exec s0 -- ip route");
  lab->require_subcommand(1);

  CLI::App* up = add_command(*lab, "up", "Build the lab of a cluster file",
                             "regatta lab up examples/cluster.yaml",
                             [=, &exit_status] { exit_status = run_up(*options); });
  up->add_option("CLUSTER", options->cluster, "Cluster file")->required()->check(not_empty());
  up->add_flag("--json", options->json, "Print JSON");

  CLI::App* down = add_command(*lab, "down", "End all processes of a lab and remove it",
                               "regatta lab down examples/cluster.yaml",
                               [=, &exit_status] { exit_status = run_down(*options); });
  down->add_option("LAB", options->lab, "Name or cluster file");
  down->add_flag("--all", options->all, "Every lab of this user");
  down->add_flag("--json", options->json, "Print JSON");

  CLI::App* ls =
      add_command(*lab, "ls", "List the labs that are up, with their size and age",
                  "regatta lab ls --json", [=, &exit_status] { exit_status = run_ls(*options); });
  ls->add_flag("--json", options->json, "Print JSON");

  CLI::App* status = add_command(*lab, "status", "Show servers, addresses, links and processes",
                                 "regatta lab status lab-4x2",
                                 [=, &exit_status] { exit_status = run_status(*options); });
  auto* place =
      status->add_option("LAB", options->lab, "Name or cluster file; all labs when left out");
  add_lab_option(*status, *options)->excludes(place);
  status->add_flag("--json", options->json, "Print JSON");

  CLI::App* exec = add_command(*lab, "exec", "Run a command on a server or switch of the lab",
                               "regatta lab exec s0 -- ip -s link",
                               [=, &exit_status] { exit_status = run_exec(*options); });
  exec->add_option("NODE", options->target, "Server or switch")->required();
  exec->add_option("COMMAND", options->command, "Command and its arguments, after --")->required();
  add_lab_option(*exec, *options);

  add_fault_commands(*lab, options, exit_status);
}

}  // namespace regatta::cli
