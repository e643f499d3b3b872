// Events of `regatta probe` about the counters of switches.
#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "regatta/app/report/network_report.h"
#include "regatta/base/core/json.h"
#include "regatta/base/core/text.h"
#include "regatta/base/core/units.h"
#include "regatta/network/fabric/routes.h"

namespace regatta::report {
namespace {

constexpr std::size_t kPortsShown = 4;

std::string device_of(const topo::Graph& graph, diag::PortNumber port) {
  return graph.nodes[fabric::tail_of(graph, port).index()].name;
}

std::string counter_event(const nlohmann::json& event) {
  return json_line(event) + "\n";
}

// "1204 of 30112 packets".
std::string broken_text(const diag::PortGrowth& growth) {
  const std::string errors = std::to_string(growth.in_errors.value_or(0));
  return growth.in_packets ? fmt::format("{} of {} packets", errors, *growth.in_packets)
                           : errors + " packets";
}

// "leaf0 at leaf0-spine1: 1204 of 30112 packets broken, 3 dropped when sent"; "": nothing counted.
std::string port_text(const topo::Graph& graph, const diag::PortGrowth& growth) {
  std::vector<std::string> parts;
  if (growth.in_errors.value_or(0) > 0) parts.push_back(broken_text(growth) + " broken");
  const auto add = [&](const std::optional<std::uint64_t>& count, const char* what) {
    if (count.value_or(0) > 0) parts.push_back(fmt::format("{} {}", *count, what));
  };
  add(growth.out_errors, "not sent for errors");
  add(growth.in_drops, "dropped when received");
  add(growth.out_drops, "dropped when sent");
  if (parts.empty()) return {};
  return fmt::format("{} at {}: {}", device_of(graph, growth.port),
                     graph.links[growth.port / 2].name, join(parts, ", "));
}

nlohmann::json port_json(const topo::Graph& graph, const diag::PortGrowth& growth) {
  nlohmann::json port{{"device", device_of(graph, growth.port)},
                      {"port", graph.links[growth.port / 2].name},
                      {"span_s", growth.span.value}};
  for (const auto& [name, count] :
       std::initializer_list<std::pair<const char*, const std::optional<std::uint64_t>&>>{
           {"in_packets", growth.in_packets},
           {"in_errors", growth.in_errors},
           {"in_drops", growth.in_drops},
           {"out_errors", growth.out_errors},
           {"out_drops", growth.out_drops}})
    if (count) port[name] = *count;
  return port;
}

const char* opinion_name(diag::CounterOpinion opinion) {
  switch (opinion) {
    case diag::CounterOpinion::kAgrees:
      return "agree";
    case diag::CounterOpinion::kDisagrees:
      return "disagree";
    case diag::CounterOpinion::kNone:
      break;
  }
  return "unknown";
}

}  // namespace

std::string ProbeEventFormat::counters_left_out(const std::string& why, Seconds at) const {
  if (options_.is_json)
    return counter_event({{"event", "counters_left_out"}, {"seconds", at.value}, {"why", why}});
  return timed_line(at, why);
}

std::string ProbeEventFormat::counter_silence(const diag::CounterSilence& silence,
                                              Seconds at) const {
  const std::string& device = graph_.nodes[silence.node.index()].name;
  if (options_.is_json)
    return counter_event({{"event", silence.is_stale ? "counters_silent" : "counters_heard"},
                          {"seconds", at.value},
                          {"device", device},
                          {"silence_s", silence.silence.value}});
  return timed_line(
      at, silence.is_stale
              ? fmt::format("counters of {}: none for {}, they are stale; see its collector",
                            device, format_seconds(silence.silence))
              : fmt::format("counters of {}: they come again", device));
}

std::string ProbeEventFormat::counted(const diag::FaultVerdict& verdict,
                                      const diag::CounterFindings& findings,
                                      const std::vector<diag::Culprit>& others, Seconds at) const {
  const std::string culprit = to_string(graph_, verdict.culprit);
  std::vector<std::string> names;
  for (const diag::Culprit& other : others)
    names.push_back(to_string(graph_, other));
  if (options_.is_json) {
    nlohmann::json ports = nlohmann::json::array();
    for (const diag::PortGrowth& growth : findings.ports)
      ports.push_back(port_json(graph_, growth));
    return counter_event({{"event", "counted"},
                          {"seconds", at.value},
                          {"culprit", culprit},
                          {"counters", opinion_name(findings.opinion)},
                          {"errors", findings.errors},
                          {"ports", ports},
                          {"or_with_errors", names}});
  }
  Seconds span;
  std::vector<std::string> parts;
  for (const diag::PortGrowth& growth : findings.ports) {
    span = std::max(span, growth.span);
    if (const std::string part = port_text(graph_, growth); !part.empty()) parts.push_back(part);
  }
  if (parts.size() > kPortsShown) {
    const std::size_t more = parts.size() - kPortsShown;
    parts.resize(kPortsShown);
    parts.push_back(pluralized(more, "more port"));
  }
  if (parts.empty()) parts.push_back("no errors at " + pluralized(findings.ports.size(), "port"));
  std::string text =
      fmt::format("{}: counters over {}: {}", culprit, format_seconds(span), join(parts, "; "));
  if (findings.opinion == diag::CounterOpinion::kAgrees) text += "; they agree";
  if (findings.opinion == diag::CounterOpinion::kDisagrees)
    text += "; they disagree: a bad cable would show there";
  if (!names.empty()) text += "; errors at " + join(names, ", ");
  return timed_line(at, text);
}

std::string ProbeEventFormat::suspicion(const diag::CounterSuspicion& suspicion, Seconds at) const {
  const diag::PortGrowth& growth = suspicion.growth;
  if (!options_.is_json)
    return timed_line(
        at, fmt::format("suspected: {}: {} counted {} broken in {}; probes lose "
                        "nothing there",
                        to_string(graph_, suspicion.culprit), device_of(graph_, growth.port),
                        broken_text(growth), format_seconds(growth.span)));
  return counter_event({{"event", "suspected"},
                        {"seconds", at.value},
                        {"source", "counters"},
                        {"culprit", to_string(graph_, suspicion.culprit)},
                        {"kind", std::string(to_string(suspicion.culprit.kind))},
                        {"is_fault", false},
                        {"counted", port_json(graph_, growth)}});
}

}  // namespace regatta::report
