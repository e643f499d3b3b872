#include "regatta/network/heal/event_text.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "regatta/base/core/json.h"
#include "regatta/base/core/text.h"
#include "regatta/base/core/units.h"
#include "regatta/model/topo/graph_names.h"
#include "regatta/network/fabric/routes.h"

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

// The direction of the link that leads away from this end.
Result<std::uint32_t> direction_from(const topo::Graph& graph, LinkId link,
                                     const std::string& from) {
  const topo::Link& ends = graph.links[link.index()];
  if (name_of(graph, ends.a) == from) return fabric::number_of({link, true});
  if (name_of(graph, ends.b) == from) return fabric::number_of({link, false});
  return wrong(fmt::format("'{}' is no end of link {}; it has {} and {}", from, ends.name,
                           name_of(graph, ends.a), name_of(graph, ends.b)));
}

Result<std::vector<Fault>> parse_broken(const topo::Graph& graph, const JsonReader& broken,
                                        Harm harm) {
  std::string switch_name;
  std::string link_text;
  std::string from;
  std::string towards;
  broken.read_if("switch", switch_name);
  broken.read_if("link", link_text);
  broken.read_if("from", from);
  broken.read_if("towards", towards);
  REGATTA_TRY_DO(broken.status());
  if (broken.has("switch")) {
    REGATTA_TRY(node, find_switch(graph, switch_name));
    return std::vector<Fault>{{Place::kSwitch, 0, node, harm}};
  }
  if (!broken.has("link"))
    return wrong("'broken' names neither a switch nor a link; give one of them");
  REGATTA_TRY(link, find_link(graph, link_text));
  const std::uint32_t forward = fabric::number_of({link, true});
  if (!broken.has("from")) {
    if (broken.has("towards")) return wrong("'towards' needs 'from', an end of the link");
    return std::vector<Fault>{{Place::kLink, forward, {}, harm},
                              {Place::kLink, forward + 1, {}, harm}};
  }
  REGATTA_TRY(direction, direction_from(graph, link, from));
  Fault fault{Place::kLink, direction, {}, harm};
  if (broken.has("towards")) {
    REGATTA_TRY(leaf, find_switch(graph, towards));
    if (graph.nodes[leaf.index()].kind != topo::NodeKind::kLeaf)
      return wrong(fmt::format("'{}' is no leaf; 'towards' names the leaf that traffic goes to",
                               name_of(graph, leaf)));
    if (leaf == fabric::tail_of(graph, direction))
      return wrong(fmt::format("'from' and 'towards' are both '{}'; name another leaf",
                               name_of(graph, leaf)));
    fault.place = Place::kHop;
    fault.node = leaf;
  }
  return std::vector<Fault>{fault};
}

Result<FaultReport> parse_losses(const topo::Graph& graph, const JsonReader& line) {
  constexpr NumberRange kShare{.low = 0, .high = 1};
  constexpr NumberRange kSpan{.low = 0.001, .high = 600};
  FaultReport report;
  report.losses.emplace();
  line.read_if("span_s", report.losses_span.value, kSpan);
  for (const JsonReader& one : line.at("lossy").items()) {
    std::string name;
    std::string from;
    diag::LinkLoss loss;
    one.read("link", name);
    one.read("from", from);
    one.read_if("now", loss.now, kShare);
    one.read_if("left", loss.left, kShare);
    one.read_if("blind", loss.is_blind);
    REGATTA_TRY_DO(one.status());
    REGATTA_TRY(link, find_link(graph, name));
    REGATTA_TRY(direction, direction_from(graph, link, from));
    loss.link = direction;
    report.losses->push_back(loss);
  }
  return line.finish(std::move(report));
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

constexpr std::size_t kNamed = 4;  // in a sentence; of more it says how many

// "leaf0, leaf2", or "leaf0, leaf1, leaf2, leaf3 and 12 others"; each once.
std::string first_of(const std::vector<std::string>& all) {
  std::vector<std::string> names;
  for (const std::string& name : all)
    if (std::ranges::find(names, name) == names.end()) names.push_back(name);
  return regatta::shortened_list(std::move(names), kNamed);
}

// "2 routes of leaf0, leaf2"
std::string routes_text(const topo::Graph& graph, const std::vector<RouteChange>& changes) {
  std::vector<std::string> switches;
  switches.reserve(changes.size());
  for (const RouteChange& change : changes)
    switches.push_back(name_of(graph, change.node));
  return fmt::format("{} route{} of {}", changes.size(), changes.size() == 1 ? "" : "s",
                     first_of(switches));
}

// The links whose next hops changed, where no fault says why.
std::string changed_links_text(const topo::Graph& graph, const Event& event) {
  const bool returns = event.kind == EventKind::kReturned;
  std::vector<std::string> links;
  for (const RouteChange& change : event.changes)
    for (const std::uint32_t link : returns ? change.returned : change.withdrawn)
      links.push_back(link_name(graph, link));
  return links.empty() ? "even shares" : first_of(links);
}

// A cable of which both directions are named is one thing.
std::string place_text(const topo::Graph& graph, const Fault& fault,
                       const std::vector<const EventReason*>& told) {
  const bool both_directions =
      fault.place == Place::kLink && std::ranges::any_of(told, [&](const EventReason* other) {
        return other->fault.place == Place::kLink && other->fault.link == (fault.link ^ 1U);
      });
  return both_directions ? link_name(graph, fault.link) + " both ways" : to_string(graph, fault);
}

// Without the name of `place` once more: "link leaf0-spine1, both ways: loss 5 %".
std::string why_text(const std::string& why, const std::string& place) {
  constexpr std::size_t kWhyMost = 120;
  const std::size_t end = why.find(": ");
  std::string head = why.substr(0, std::min(end, why.size()));
  std::erase(head, ',');
  const bool repeats = end != std::string::npos && head.ends_with(place);
  return printable(repeats ? why.substr(end + 2) : why, kWhyMost);
}

// "switch spine1 (probes)": those of one reason together; `says_why`: or without it.
std::string faults_text(const topo::Graph& graph, const std::vector<EventReason>& reasons,
                        bool says_why) {
  std::vector<std::pair<std::string, std::vector<const EventReason*>>> groups;
  for (const EventReason& reason : reasons) {
    const std::string why = says_why ? reason.why : "";
    auto at = std::ranges::find_if(groups, [&](const auto& one) { return one.first == why; });
    if (at == groups.end()) at = groups.insert(at, {why, {}});
    at->second.push_back(&reason);
  }
  std::vector<std::string> texts;
  for (const auto& [why, told] : groups) {
    std::vector<std::string> places;
    for (const EventReason* const reason : told)
      places.push_back(place_text(graph, reason->fault, told));
    const std::string named = first_of(places);
    texts.push_back(says_why ? fmt::format("{} ({})", named, why_text(why, named)) : named);
    constexpr std::size_t kReasons = 2;
    if (texts.size() == kReasons && groups.size() > kReasons) {
      texts.push_back(fmt::format("and for {} other reasons", groups.size() - kReasons));
      break;
    }
  }
  return join(texts, ", ");
}

// Also by its old names, until the next minor version.
Harm read_harm(const JsonReader& harm) {
  static constexpr std::array kHarms = {Harm::kLoss, Harm::kBlackHole, Harm::kNoCarrier};
  if (harm.raw() == "loses") return Harm::kLoss;
  if (harm.raw() == "eats") return Harm::kBlackHole;
  return harm.as<Harm>(kHarms);
}

}  // namespace

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
    case EventKind::kRecovered:
      return "recovered";
    case EventKind::kRepaired:
      return "repaired";
    case EventKind::kRestarted:
      return "restarted";
    case EventKind::kWarning:
      return "warning";
  }
  return "";
}

std::string_view to_string(Harm harm) {
  if (harm == Harm::kLoss) return "loss";
  return harm == Harm::kBlackHole ? "black hole" : "no carrier";
}

Result<FaultReport> parse_report(const topo::Graph& graph, std::string_view text) {
  const auto report = JsonReader::parse(text, "report");
  if (report && report->has("lossy")) return parse_losses(graph, *report);
  if (report && report->has("noted")) {
    FaultReport noted;
    report->read("noted", noted.noted);
    report->read_if("why", noted.why);
    REGATTA_TRY_DO(report->status());
    return FaultReport{.faults = {},
                       .why = printable(noted.why, kLongest),
                       .noted = printable(noted.noted, kLongest)};
  }
  if (!report || !report->has("broken"))
    return wrong(R"(not understood; write it like {"broken": {"link": "leaf0-spine1"}})");
  Harm harm = Harm::kBlackHole;
  std::string why = "reported";
  if (report->has("harm")) harm = read_harm(report->at("harm"));
  report->read_if("why", why);
  REGATTA_TRY(faults, parse_broken(graph, report->at("broken"), harm));
  bool is_probed = false;
  report->read_if("probed", is_probed);
  REGATTA_TRY_DO(report->status());
  return FaultReport{std::move(faults), printable(why, kLongest), is_probed};
}

json to_json(const topo::Graph& graph, const Event& event) {
  json out{{"event", to_string(event.kind)}, {"at_s", event.at.value}};
  for (const EventReason& reason : event.reasons) {
    json one = fault_to_json(graph, reason.fault);
    one["why"] = reason.why;
    one["clean_s"] = reason.clean.value;
    out["faults"].push_back(std::move(one));
  }
  for (const RouteChange& change : event.changes) {
    json one{{"switch", name_of(graph, change.node)}, {"towards", name_of(graph, change.leaf)}};
    if (!change.withdrawn.empty()) one["withdrawn"] = links_to_json(graph, change.withdrawn);
    if (!change.returned.empty()) one["returned"] = links_to_json(graph, change.returned);
    one["left"] = links_to_json(graph, hops_of(change.parts));
    out["routes"].push_back(std::move(one));
  }
  for (const RefusedWithdrawal& refusal : event.refusals)
    out["pairs"].push_back({name_of(graph, refusal.from), name_of(graph, refusal.to)});
  if (!event.message.empty()) out["message"] = event.message;
  if (event.kind == EventKind::kRestarted) out["count"] = event.count;
  return out;
}

json held_to_json(const topo::Graph& graph, const std::vector<HeldFault>& held, Seconds now) {
  json out{{"event", "held"}, {"at_s", now.value}, {"faults", json::array()}};
  for (const HeldFault& one : held) {
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
  const bool returns = event.kind == EventKind::kReturned;
  text += ": " + (event.reasons.empty() ? changed_links_text(graph, event)
                                        : faults_text(graph, event.reasons, !returns));
  if (!event.changes.empty())
    text += (returns ? "; back in " : "; out of ") + routes_text(graph, event.changes);
  if (event.kind == EventKind::kWithdrawn && !event.reasons.empty())
    text += fmt::format("; back after {} without it", format_seconds(event.reasons.front().clean));
  if (event.kind == EventKind::kHarmless) text += "; there is nothing to withdraw";
  if (!event.refusals.empty()) {
    const RefusedWithdrawal& first = event.refusals.front();
    text += fmt::format("; {} has no better path to {}", name_of(graph, first.from),
                        name_of(graph, first.to));
    if (event.refusals.size() > 1)
      text += fmt::format(", and so for {} more pairs of leaves", event.refusals.size() - 1);
  }
  return text;
}

}  // namespace regatta::heal
