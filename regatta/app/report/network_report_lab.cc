// The state of a lab, and what changes it.
#include <algorithm>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "regatta/app/report/network_report.h"
#include "regatta/base/core/text.h"
#include "regatta/base/core/units.h"

namespace regatta::report {
namespace {

std::string link_state_text(const lab::LinkState& link) {
  std::string text = link.up ? "up" : "down";
  if (link.drop_share > 0) text += fmt::format(", drops {}", format_percent(link.drop_share));
  if (link.has_fault) text += " (fault)";
  return text;
}

long processes_on(const std::vector<lab::LabProcess>& processes, const std::string& node) {
  return std::count_if(processes.begin(), processes.end(),
                       [&](const lab::LabProcess& process) { return process.node == node; });
}

std::string lab_state(const RunningLab& lab) {
  return lab.faults == 0 ? "up" : "up, " + pluralized(lab.faults, "faulty link");
}

std::ptrdiff_t switch_count(const topo::Graph& graph) {
  return std::ranges::count_if(
      graph.nodes, [](const topo::Node& node) { return node.kind != topo::NodeKind::kServer; });
}

}  // namespace

std::string lab_list_text(const std::vector<RunningLab>& labs) {
  if (labs.empty()) return "no lab is up\n";
  std::vector<std::vector<std::string>> rows = {{"lab", "servers", "switches", "state", "age"}};
  for (const RunningLab& lab : labs)
    rows.push_back({lab.name, std::to_string(lab.servers), std::to_string(lab.switches),
                    lab_state(lab), format_seconds(lab.age)});
  return format_table(rows);
}

nlohmann::json lab_list_json(const std::vector<RunningLab>& labs) {
  nlohmann::json all = nlohmann::json::array();
  for (const RunningLab& lab : labs)
    all.push_back({{"name", lab.name},
                   {"servers", lab.servers},
                   {"switches", lab.switches},
                   {"state", "up"},
                   {"faulty_links", lab.faults},
                   {"age_s", lab.age.value}});
  return {{"labs", all}};
}

std::string lab_up_text(const lab::LabInfo& lab) {
  std::string text = fmt::format(
      "lab {}: up in {}, {}{}\n", lab.name, format_seconds(Seconds{lab.up_seconds}),
      pluralized(lab.servers.size(), "server"), lab.user_namespace ? ", in a user namespace" : "");
  if (!lab.fixed_speed) text += fmt::format("device speed is not fixed: {}\n", lab.speed_note);
  return text;
}

std::string lab_down_text(const std::string& name) {
  return fmt::format("lab {}: down\n", name);
}

nlohmann::json lab_down_json(const std::vector<std::string>& names) {
  return {{"down", names}};
}

std::string lab_speed_text(const lab::LabInfo& lab) {
  return fmt::format("lab {}: {} servers, {:.1f} % of a core for each device\n", lab.name,
                     lab.servers.size(), 100 * lab.cpu_share);
}

// "leaf0-spine1: down", "s0.nic0-leaf0: slow, 10Mbps", "all faults: clear"
std::string lab_fault_text(const LabFaultChange& change) {
  return fmt::format("lab {}: {}: {}{}\n", change.lab,
                     change.target.empty() ? "all faults" : change.target, change.kind,
                     change.amount.empty() ? "" : ", " + change.amount);
}

nlohmann::json lab_fault_json(const LabFaultChange& change) {
  return {{"lab", change.lab}, {"fault", change.kind}, {"target", change.target}};
}

std::string healing_text(const topo::Graph& graph, const std::string& socket, bool is_dry_run) {
  return fmt::format("healing {} switches{}; reports and subscribers: {}\n", switch_count(graph),
                     is_dry_run ? " (dry run: nothing is changed)" : "", socket);
}

nlohmann::json healing_json(const topo::Graph& graph, const std::string& socket, bool is_dry_run,
                            Seconds at) {
  return {{"event", "started"},
          {"at_s", at.value},
          {"switches", switch_count(graph)},
          {"socket", socket},
          {"dry_run", is_dry_run}};
}

std::string lab_status_text(const lab::LabInfo& lab, const std::vector<lab::LinkState>& links,
                            const std::vector<lab::LabProcess>& processes) {
  std::string text = fmt::format("lab {} (process {}{}), folder {}\n", lab.name, lab.holder,
                                 lab.user_namespace ? ", in a user namespace" : "", lab.folder);
  text += lab.fixed_speed
              ? fmt::format("each device has {} of a core\n", format_percent(lab.cpu_share))
              : fmt::format("device speed is not fixed: {}\n", lab.speed_note);
  std::vector<std::vector<std::string>> rows = {{"server", "addresses", "devices", "processes"}};
  for (const lab::LabServer& server : lab.servers) {
    rows.push_back({server.name, join(server.nic_addresses, ","),
                    std::to_string(server.devices.size()),
                    std::to_string(processes_on(processes, server.name))});
  }
  text += "\n" + format_table(rows);
  rows = {{"link", "rate", "sent forward", "sent back", "state"}};
  for (const lab::LinkState& link : links) {
    rows.push_back({link.name, format_bits_per_second(link.rate), format_bytes(link.sent_by_a),
                    format_bytes(link.sent_by_b), link_state_text(link)});
  }
  if (!links.empty()) text += "\n" + format_table(rows);
  rows = {{"process", "node", "command", "state"}};
  for (const lab::LabProcess& process : processes) {
    rows.push_back({std::to_string(process.pid), process.node, process.command,
                    process.stopped ? "stopped" : "running"});
  }
  if (!processes.empty()) text += "\n" + format_table(rows);
  return text;
}

nlohmann::json lab_status_json(const lab::LabInfo& lab, const std::vector<lab::LinkState>& links,
                               const std::vector<lab::LabProcess>& processes) {
  nlohmann::json json = {{"name", lab.name},
                         {"holder", lab.holder},
                         {"user_namespace", lab.user_namespace},
                         {"fixed_speed", lab.fixed_speed},
                         {"speed_note", lab.speed_note},
                         {"cpu_share", lab.cpu_share},
                         {"folder", lab.folder},
                         {"up_time_s", lab.up_seconds},
                         {"servers", nlohmann::json::array()},
                         {"links", nlohmann::json::array()},
                         {"processes", nlohmann::json::array()}};
  for (const lab::LabServer& server : lab.servers) {
    nlohmann::json devices = nlohmann::json::array();
    for (const lab::LabDevice& device : server.devices)
      devices.push_back({{"cpu_share", device.cpu_share}, {"cgroup", device.cgroup}});
    json["servers"].push_back(
        {{"name", server.name}, {"nic_addresses", server.nic_addresses}, {"devices", devices}});
  }
  for (const lab::LinkState& link : links) {
    json["links"].push_back({{"name", link.name},
                             {"a", link.a},
                             {"b", link.b},
                             {"up", link.up},
                             {"rate_Bps", link.rate.value},
                             {"drop_share", link.drop_share},
                             {"has_fault", link.has_fault},
                             {"sent_by_a_bytes", link.sent_by_a.value},
                             {"sent_by_b_bytes", link.sent_by_b.value}});
  }
  for (const lab::LabProcess& process : processes) {
    json["processes"].push_back({{"pid", process.pid},
                                 {"node", process.node},
                                 {"command", process.command},
                                 {"stopped", process.stopped}});
  }
  return json;
}

}  // namespace regatta::report
