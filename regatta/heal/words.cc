#include "regatta/heal/words.h"

#include <algorithm>
#include <set>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "regatta/core/text.h"
#include "regatta/core/units_text.h"
#include "regatta/fabric/directed_links.h"
#include "regatta/topo/graph_names.h"

namespace regatta::heal {
namespace {

using nlohmann::json;

const std::string& name_of(const topo::Graph& graph, NodeId node) {
  return graph.nodes[node.index()].name;
}
const std::string& link_name(const topo::Graph& graph, std::uint32_t link) {
  return graph.links[link / 2].name;
}
constexpr std::size_t kLongest = 200;  // of what others wrote

Error wrong(const std::string& message) {
  return {Code::kInvalidInput, "report: " + printable(message, 2 * kLongest)};
}

Result<NodeId> find_switch(const topo::Graph& graph, const std::string& name) {
  const auto node = topo::find_node(graph, name);
  if (node && graph.nodes[node->index()].kind != topo::NodeKind::kServer) return *node;
  return wrong(fmt::format("there is no switch '{}'; name one like leaf0 or spine1", name));
}

Result<LinkId> find_link(const topo::Graph& graph, const std::string& name) {
  if (const auto link = topo::find_link(graph, name)) return *link;
  return wrong(fmt::format("there is no link '{}'; name one like {}", name,
                           graph.links.empty() ? "leaf0-spine1" : graph.links.back().name));
}

Result<std::vector<Fault>> parse_broken(const topo::Graph& graph, const json& broken, Harm harm) {
  if (broken.contains("switch")) {
    REGATTA_TRY(node, find_switch(graph, broken.at("switch").get<std::string>()));
    return std::vector<Fault>{{Place::kSwitch, 0, node, harm}};
  }
  if (!broken.contains("link"))
    return wrong("'broken' names neither a switch nor a link; give one of them");
  REGATTA_TRY(link, find_link(graph, broken.at("link").get<std::string>()));
  const std::uint32_t forward = fabric::number_of({link, true});
  if (!broken.contains("from")) {
    if (broken.contains("towards")) return wrong("'towards' needs 'from', an end of the link");
    return std::vector<Fault>{{Place::kLink, forward, {}, harm},
                              {Place::kLink, forward + 1, {}, harm}};
  }
  const auto from = broken.at("from").get<std::string>();
  Fault fault{Place::kLink, forward, {}, harm};
  if (name_of(graph, graph.links[link.index()].b) == from) {
    ++fault.link;
  } else if (name_of(graph, graph.links[link.index()].a) != from) {
    return wrong(fmt::format(
        "'{}' is no end of link {}; it has {} and {}", from, graph.links[link.index()].name,
        name_of(graph, graph.links[link.index()].a), name_of(graph, graph.links[link.index()].b)));
  }
  if (broken.contains("towards")) {
    REGATTA_TRY(leaf, find_switch(graph, broken.at("towards").get<std::string>()));
    if (graph.nodes[leaf.index()].kind != topo::NodeKind::kLeaf)
      return wrong(fmt::format("'{}' is no leaf; 'towards' names the leaf that traffic goes to",
                               name_of(graph, leaf)));
    fault.place = Place::kHop;
    fault.node = leaf;
  }
  return std::vector<Fault>{fault};
}

json fault_to_json(const topo::Graph& graph, const Fault& fault) {
  json out{{"harm", to_string(fault.harm)}};
  if (fault.place == Place::kSwitch) {
    out["switch"] = name_of(graph, fault.node);
    return out;
  }
  out["link"] = link_name(graph, fault.link);
  out["from"] = name_of(graph, fabric::tail_of(graph, fault.link));
  if (fault.place == Place::kHop) out["towards"] = name_of(graph, fault.node);
  return out;
}

json links_to_json(const topo::Graph& graph, const std::vector<std::uint32_t>& links) {
  json names = json::array();
  for (const std::uint32_t link : links)
    names.push_back(link_name(graph, link));
  return names;
}

// "2 routes of leaf0, leaf2"
std::string routes_text(const topo::Graph& graph, const std::vector<RouteChange>& changes) {
  std::vector<std::string> switches;
  for (const RouteChange& change : changes) {
    const std::string& name = name_of(graph, change.node);
    if (std::ranges::find(switches, name) == switches.end()) switches.push_back(name);
  }
  constexpr std::size_t kMost = 6;
  const std::size_t more = switches.size() - std::min(switches.size(), kMost);
  if (more > 0) switches.resize(kMost);
  return fmt::format("{} route{} of {}{}", changes.size(), changes.size() == 1 ? "" : "s",
                     join(switches, ", "), more > 0 ? fmt::format(" and {} more", more) : "");
}

}  // namespace

std::string to_line(const json& value) {
  return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

std::string_view to_string(EventKind kind) {
  switch (kind) {
    case EventKind::kTakenOver:
      return "taken over";
    case EventKind::kWithdrawn:
      return "withdrawn";
    case EventKind::kReturned:
      return "returned";
    case EventKind::kRefused:
      return "refused";
    case EventKind::kHarmless:
      return "noted";
    case EventKind::kFailed:
      return "failed";
  }
  return "";
}

std::string_view to_string(Harm harm) {
  if (harm == Harm::kLoses) return "loses";
  return harm == Harm::kEats ? "eats" : "no carrier";
}

Result<Report> parse_report(const topo::Graph& graph, std::string_view text) {
  const json line = json::parse(text, nullptr, false);
  if (!line.is_object() || !line.contains("broken") || !line.at("broken").is_object())
    return wrong(R"(not understood; write it like {"broken": {"link": "leaf0-spine1"}})");
  try {
    const auto word = line.value("harm", "eats");
    Harm harm = Harm::kEats;
    if (word == to_string(Harm::kLoses)) {
      harm = Harm::kLoses;
    } else if (word == to_string(Harm::kNoCarrier)) {
      harm = Harm::kNoCarrier;
    } else if (word != to_string(Harm::kEats)) {
      return wrong(fmt::format("harm '{}' is not known; choose loses, eats or no carrier", word));
    }
    REGATTA_TRY(faults, parse_broken(graph, line.at("broken"), harm));
    return Report{std::move(faults), printable(line.value("why", "reported"), kLongest)};
  } catch (const json::exception&) {
    return wrong("names are texts; write them in quotes");
  }
}

json to_json(const topo::Graph& graph, const Event& event) {
  json out{{"event", to_string(event.kind)}, {"at_s", event.at.value}};
  for (const Blame& blame : event.blames) {
    json one = fault_to_json(graph, blame.fault);
    one["why"] = blame.why;
    one["clean_s"] = blame.clean.value;
    out["faults"].push_back(std::move(one));
  }
  for (const RouteChange& change : event.changes) {
    json one{{"switch", name_of(graph, change.node)}, {"towards", name_of(graph, change.leaf)}};
    if (!change.withdrawn.empty()) one["withdrawn"] = links_to_json(graph, change.withdrawn);
    if (!change.returned.empty()) one["returned"] = links_to_json(graph, change.returned);
    one["left"] = links_to_json(graph, hops_of(change.parts));
    out["routes"].push_back(std::move(one));
  }
  for (const Refusal& refusal : event.refusals)
    out["pairs"].push_back({name_of(graph, refusal.from), name_of(graph, refusal.to)});
  if (!event.message.empty()) out["message"] = event.message;
  return out;
}

json held_to_json(const topo::Graph& graph, const std::vector<Held>& held, Seconds now) {
  json out{{"event", "held"}, {"at_s", now.value}, {"faults", json::array()}};
  for (const Held& one : held) {
    json fault = fault_to_json(graph, one.fault);
    fault["why"] = one.why;
    fault["since_s"] = one.since.value;
    fault["clean_s"] = one.clean.value;
    out["faults"].push_back(std::move(fault));
  }
  return out;
}

std::string to_text(const topo::Graph& graph, const Event& event) {
  std::string text{to_string(event.kind)};
  if (!event.message.empty()) return text + ": " + event.message;
  std::vector<std::string> faults;
  for (const Blame& blame : event.blames)
    faults.push_back(fmt::format("{} ({})", to_string(graph, blame.fault), blame.why));
  if (!faults.empty()) text += ": " + join(faults, ", ");
  const bool returns = event.kind == EventKind::kReturned;
  if (!event.changes.empty())
    text += (returns ? "; back in " : "; out of ") + routes_text(graph, event.changes);
  if (event.kind == EventKind::kWithdrawn && !event.blames.empty())
    text += fmt::format("; back after {} without it", format_seconds(event.blames.front().clean));
  if (event.kind == EventKind::kHarmless) text += "; there is nothing to withdraw";
  if (!event.refusals.empty()) {
    const Refusal& first = event.refusals.front();
    text += fmt::format("; {} has no better way to {}", name_of(graph, first.from),
                        name_of(graph, first.to));
    if (event.refusals.size() > 1)
      text += fmt::format(", and so for {} more pairs of leaves", event.refusals.size() - 1);
  }
  return text;
}

}  // namespace regatta::heal
