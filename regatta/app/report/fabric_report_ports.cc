// Source ports of connections, and alarms about pause storms.
#include <algorithm>
#include <functional>
#include <numeric>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "regatta/app/report/fabric_report.h"
#include "regatta/app/report/internal/link_names.h"
#include "regatta/app/report/internal/old_names.h"
#include "regatta/base/core/text.h"
#include "regatta/model/topo/addresses.h"
#include "regatta/model/topo/graph_names.h"

namespace regatta::report {
namespace {

using nlohmann::json;

constexpr std::size_t kConnectionsShown = 10;

// A connection of the plan, as texts: from, to, addresses, ports.
std::vector<std::string> connection_row(const PortPlanReport& plan, std::size_t at) {
  const auto pair = static_cast<std::uint32_t>(at / plan.pairs.connections);
  const fabric::FiveTuple flow =
      plan.pairs.tuple(pair, static_cast<std::uint32_t>(at % plan.pairs.connections));
  return {fabric::nic_name(plan.graph, plan.pairs.pairs[pair].from),
          fabric::nic_name(plan.graph, plan.pairs.pairs[pair].to),
          topo::address_text(flow.from),
          topo::address_text(flow.to),
          std::to_string(flow.to_port),
          std::to_string(plan.ports.ports[at]),
          std::to_string(flow.from_port)};
}

const std::vector<std::string>& connection_heading() {
  static const std::vector<std::string> names = {
      "from", "to", "from_address", "to_address", "to_port", "from_port", "from_port_by_chance"};
  return names;
}

std::string priority_text(int priority) {
  return priority == fabric::kAllPriorities ? "all priorities"
                                            : fmt::format("priority {}", priority);
}

}  // namespace

std::string port_plan_csv(const PortPlanReport& plan) {
  std::string text = join(connection_heading(), ",") + "\n";
  for (std::size_t at = 0; at < plan.ports.ports.size(); ++at)
    text += join(connection_row(plan, at), ",") + "\n";
  return text;
}

// The result, then the connections whose links are the fullest.
std::string port_plan_text(const PortPlanReport& plan) {
  const std::size_t all = plan.ports.ports.size();
  std::vector<std::size_t> worst(all);
  std::iota(worst.begin(), worst.end(), std::size_t{0});
  std::ranges::stable_sort(worst, std::ranges::greater{},
                           [&](std::size_t i) { return at(plan.planned.of_connection, i); });
  worst.resize(std::min(all, kConnectionsShown));
  std::vector<std::vector<std::string>> rows = {
      {"from", "to", "source port", "on its fullest link", "random port", "on its fullest link"}};
  for (const std::size_t i : worst) {
    const std::vector<std::string> fields = connection_row(plan, i);
    rows.push_back({fields[0], fields[1], fields[5],
                    std::to_string(at(plan.planned.of_connection, i)), fields[6],
                    std::to_string(at(plan.by_chance.of_connection, i))});
  }
  std::string text = fmt::format(
      "{}: at most {} on one link between switches with planned ports, {} with random ports\n\n{}",
      pluralized(all, "connection"), plan.planned.max, plan.by_chance.max, format_table(rows));
  if (all > kConnectionsShown)
    text += fmt::format("... {} more; --out FILE and --json show all\n", all - kConnectionsShown);
  return text;
}

json port_plan_json(const PortPlanReport& plan) {
  json connections = json::array();
  for (std::size_t at = 0; at < plan.ports.ports.size(); ++at) {
    const std::vector<std::string> row = connection_row(plan, at);
    json one;
    for (std::size_t i = 0; i < row.size(); ++i)
      one[connection_heading()[i]] = i < 4 ? json(row[i]) : json(std::stoi(row[i]));
    connections.push_back(std::move(one));
  }
  json all = {{"max_link_connections", plan.planned.max},
              {"max_link_connections_by_chance", plan.by_chance.max},
              {"connections", connections}};
  add_old_names(all, {{"max_link_connections", "most_on_a_link"},
                      {"max_link_connections_by_chance", "most_on_a_link_by_chance"}});
  return all;
}

std::string storm_alarm_text(const topo::Graph* graph, const fabric::PortStormAlarm& alarm) {
  const std::string port =
      printable(alarm.device.empty() ? alarm.port : alarm.device + " " + alarm.port, 120);
  const std::string where =
      fmt::format("{:.3f} s  {}, {}", alarm.alarm.at.value, port, priority_text(alarm.priority));
  if (!alarm.alarm.is_storm)
    return fmt::format("{}: no pause since {:.3f} s; the storm is over\n", where,
                       alarm.alarm.since.value);
  std::string text =
      fmt::format("{}: pause storm since {:.3f} s: {}", where, alarm.alarm.since.value,
                  alarm.is_held ? "its peer pauses it, and it sends nothing"
                                : "it pauses its peer, and receives nothing");
  if (graph != nullptr && alarm.tree) {
    text += fmt::format("\n  began at {}", graph->nodes[alarm.tree->root].name);
    if (!alarm.tree->cycle.empty())
      text +=
          fmt::format(", where a cycle of {} links wait for each other", alarm.tree->cycle.size());
    text += "; paused links: " + join(link_names(*graph, alarm.tree->links), ", ");
  }
  return text + "\n";
}

json storm_alarm_json(const topo::Graph* graph, const fabric::PortStormAlarm& alarm) {
  json one = {
      {"event", alarm.alarm.is_storm ? "storm" : "over"},
      {"device", alarm.device},
      {"port", alarm.port},
      {"priority", alarm.priority == fabric::kAllPriorities ? json("link") : json(alarm.priority)},
      {"is_held", alarm.is_held},
      {"since_s", alarm.alarm.since.value},
      {"at_s", alarm.alarm.at.value}};
  if (graph == nullptr || !alarm.tree) return one;
  one["root"] = graph->nodes[alarm.tree->root].name;
  one["cycle"] = link_names(*graph, alarm.tree->cycle);
  add_old_names(one, {{"cycle", "circle"}});
  one["links"] = link_names(*graph, alarm.tree->links);
  return one;
}

std::string watched_device_text(const WatchedDeviceChange& change) {
  return fmt::format(
      "{:.3f} s  {}\n", change.at.value,
      change.reason.empty()
          ? printable(change.device, 60) + ": its counters are read again"
          : printable(change.reason, 200) + "; it is watched again once it can be read");
}

json watched_device_json(const WatchedDeviceChange& change) {
  json one = {{"event", change.reason.empty() ? "back" : "lost"},
              {"port", change.device},
              {"at_s", change.at.value}};
  if (!change.reason.empty()) one["reason"] = change.reason;
  return one;
}

std::string storm_watch_text(const StormWatchSummary& summary) {
  return fmt::format("ports watched: {}; priorities and directions: {}; pause storms: {}\n",
                     summary.ports, summary.queues, summary.storms);
}

json storm_watch_json(const StormWatchSummary& summary) {
  return {{"event", "end"},
          {"ports", summary.ports},
          {"queues", summary.queues},
          {"storms", summary.storms}};
}

}  // namespace regatta::report
