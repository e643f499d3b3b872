#include "regatta/network/diag/fault_verdict.h"

#include <algorithm>
#include <optional>

#include <fmt/core.h>

#include "regatta/base/core/text.h"
#include "regatta/base/core/units.h"
#include "regatta/model/topo/addresses.h"
#include "regatta/network/fabric/routes.h"

namespace regatta::diag {
namespace {

constexpr EnumNames<8> kKindNames = {"none",   "link",       "switch",  "nic",
                                     "server", "host noise", "cabling", "addresses"};
constexpr EnumNames<10> kSymptomNames = {"loss",
                                         "black hole",
                                         "some flows",
                                         "no carrier",
                                         "silent",
                                         "late",
                                         "loss of large packets",
                                         "loss of users' packets",
                                         "swapped",
                                         "used twice"};

const std::string& name_of(const topo::Graph& graph, NodeId node) {
  return graph.nodes[node.index()].name;
}

std::string direction_text(const topo::Graph& graph, const Culprit& culprit) {
  if (culprit.forward == culprit.backward) return ", both ways";
  const topo::Link& link = graph.links[culprit.link.index()];
  const NodeId from = culprit.forward ? link.a : link.b;
  const NodeId to = culprit.forward ? link.b : link.a;
  return fmt::format(" from {} to {}", name_of(graph, from), name_of(graph, to));
}

std::string nic_text(const topo::Graph& graph, LinkId link) {
  const topo::Link& cable = graph.links[link.index()];
  return fmt::format("{}.nic{}", name_of(graph, cable.a), cable.a_nic);
}

// "address 10.64.0.0 of s0.nic0 and s4".
std::string address_text(const topo::Graph& graph, const Culprit& culprit) {
  return fmt::format(
      "address {} of {} and {}", topo::address_text(topo::address_of(culprit.link)),
      nic_text(graph, culprit.link),
      culprit.other.is_valid() ? nic_text(graph, culprit.other) : name_of(graph, culprit.node));
}

}  // namespace

Culprit link_culprit(topo::DirectedLink link) {
  return {.kind = CulpritKind::kLink,
          .link = link.link,
          .forward = link.forward,
          .backward = !link.forward,
          .node = {}};
}

Culprit both_directions_culprit(LinkId link) {
  return {.kind = CulpritKind::kLink, .link = link, .forward = true, .backward = true, .node = {}};
}

Culprit nic_culprit(const topo::Graph& graph, LinkId link) {
  return {.kind = CulpritKind::kNic, .link = link, .node = graph.links[link.index()].a};
}

Culprit cable_culprit(const topo::Graph& graph, LinkId link) {
  return graph.links[link.index()].a_nic >= 0 ? nic_culprit(graph, link)
                                              : both_directions_culprit(link);
}

Culprit switch_culprit(NodeId node) {
  return {.kind = CulpritKind::kSwitch, .link = {}, .node = node};
}

Culprit server_culprit(NodeId node) {
  return {.kind = CulpritKind::kServer, .link = {}, .node = node};
}

Culprit host_noise_culprit(NodeId node) {
  return {.kind = CulpritKind::kHostNoise, .link = {}, .node = node};
}

bool is_of_variant(Symptom symptom) {
  return symptom == Symptom::kLargePackets || symptom == Symptom::kUserPackets;
}

Culprit cabling_culprit(LinkId one, LinkId other) {
  return {.kind = CulpritKind::kCabling,
          .link = std::min(one, other),
          .node = {},
          .other = std::max(one, other)};
}

bool is_misconfiguration(const Culprit& culprit) {
  return culprit.kind == CulpritKind::kCabling || culprit.kind == CulpritKind::kAddresses;
}

bool is_fault(const FaultVerdict& verdict) {
  return verdict.culprit.kind != CulpritKind::kNone &&
         verdict.culprit.kind != CulpritKind::kHostNoise;
}

std::vector<std::uint32_t> links_to_avoid(const topo::Graph& graph, const Culprit& culprit) {
  switch (culprit.kind) {
    case CulpritKind::kNone:
    case CulpritKind::kHostNoise:
    case CulpritKind::kCabling:
    case CulpritKind::kAddresses:
      return {};
    case CulpritKind::kNic:
      return {fabric::number_of({culprit.link, true}), fabric::number_of({culprit.link, false})};
    case CulpritKind::kLink: {
      std::vector<std::uint32_t> links;
      if (culprit.forward) links.push_back(fabric::number_of({culprit.link, true}));
      if (culprit.backward) links.push_back(fabric::number_of({culprit.link, false}));
      return links;
    }
    case CulpritKind::kSwitch:
    case CulpritKind::kServer:
      break;
  }
  std::vector<std::uint32_t> links;
  for (const LinkId link : graph.links_of[culprit.node.index()]) {
    links.push_back(fabric::number_of({link, true}));
    links.push_back(fabric::number_of({link, false}));
  }
  return links;
}

std::string_view to_string(CulpritKind kind) {
  return kKindNames[static_cast<std::size_t>(kind)];
}

std::string_view to_string(Symptom symptom) {
  return kSymptomNames[static_cast<std::size_t>(symptom)];
}

std::string to_string(const topo::Graph& graph, const Culprit& culprit) {
  std::string kind(to_string(culprit.kind));
  switch (culprit.kind) {
    case CulpritKind::kNone:
      return kind;
    case CulpritKind::kLink:
      return kind + " " + graph.links[culprit.link.index()].name + direction_text(graph, culprit);
    case CulpritKind::kNic:
      return kind + " " + nic_text(graph, culprit.link);
    case CulpritKind::kCabling:
      return fmt::format("cables {} and {}", graph.links[culprit.link.index()].name,
                         graph.links[culprit.other.index()].name);
    case CulpritKind::kAddresses:
      return address_text(graph, culprit);
    case CulpritKind::kHostNoise:
      return kind + " on " + name_of(graph, culprit.node);
    case CulpritKind::kSwitch:
    case CulpritKind::kServer:
      break;
  }
  return kind + " " + name_of(graph, culprit.node);
}

namespace {

bool is_node(const Culprit& culprit) {
  return culprit.kind == CulpritKind::kSwitch || culprit.kind == CulpritKind::kServer;
}

// The node that both cables share; none if they share no end.
std::optional<NodeId> common_end(const topo::Graph& graph, LinkId one, LinkId other) {
  const topo::Link& first = graph.links[one.index()];
  const topo::Link& second = graph.links[other.index()];
  for (const NodeId node : {first.a, first.b})
    if (node == second.a || node == second.b) return node;
  return std::nullopt;
}

std::string cable_name(const topo::Graph& graph, const Culprit& culprit) {
  return graph.links[culprit.link.index()].name;
}

std::string check_of_cable_and_node(const topo::Graph& graph, const Culprit& cable,
                                    const Culprit& node) {
  const std::string name = name_of(graph, node.node);
  if (node.kind == CulpritKind::kServer)
    return fmt::format("log in to {} over another network: it is well if only {} is broken", name,
                       cable_name(graph, cable));
  return fmt::format(
      "read the error and drop counters of {} at both ends: they count for the "
      "cable; drops inside {} count at none of its ports or at several",
      cable_name(graph, cable), name);
}

}  // namespace

std::string distinguishing_check(const topo::Graph& graph, const Culprit& culprit,
                                 const Culprit& alternative) {
  if (culprit == alternative) return {};
  if (is_node(culprit) && is_node(alternative))
    return fmt::format("look at {} and {} over another network, and read their drop counters",
                       name_of(graph, culprit.node), name_of(graph, alternative.node));
  if (is_node(culprit)) return check_of_cable_and_node(graph, alternative, culprit);
  if (is_node(alternative)) return check_of_cable_and_node(graph, culprit, alternative);
  if (culprit.link == alternative.link)
    return fmt::format(
        "read the counters of {} at both ends: the direction is broken in which more "
        "is sent than received",
        cable_name(graph, culprit));
  if (const auto node = common_end(graph, culprit.link, alternative.link))
    return fmt::format(
        "trace the lossy paths to {}, where {} and {} meet: what gets that far has "
        "crossed only the first of them",
        name_of(graph, *node), cable_name(graph, culprit), cable_name(graph, alternative));
  return fmt::format("read the error and drop counters of {} and {} at both ends",
                     cable_name(graph, culprit), cable_name(graph, alternative));
}

std::string to_string(const topo::Graph& graph, const FaultVerdict& verdict) {
  const Evidence& evidence = verdict.evidence;
  const bool has_probes = evidence.sent > 0;  // a carrier needs none
  const std::string share = has_probes && verdict.loss_share > 0
                                ? " " + format_percent(verdict.loss_share)
                                : std::string();
  std::string probes;
  if (has_probes) probes = fmt::format(", {} of {} probes", evidence.lost, evidence.sent);
  if (has_probes && evidence.paths > 0)  // a busy host's are not counted
    probes += fmt::format(" on {} of {} paths", evidence.paths_hit, evidence.paths);
  return fmt::format("{}: {}{}{}, confidence {:.3f}", to_string(graph, verdict.culprit),
                     to_string(verdict.symptom), share, probes, verdict.confidence);
}

}  // namespace regatta::diag
