// diag/internal/components.h: what of a network can break, by number.
#pragma once

#include <cstdint>
#include <span>

#include "regatta/model/topo/graph.h"
#include "regatta/network/diag/fault_verdict.h"
#include "regatta/network/diag/internal/explain.h"
#include "regatta/network/diag/internal/path_crossing.h"
#include "regatta/network/fabric/routes.h"

namespace regatta::diag {

// Components by number: directed links, then cables, then nodes.
class Components {
 public:
  explicit Components(const topo::Graph& graph)
      : graph_(graph), links_(static_cast<std::uint32_t>(graph.links.size())) {}

  std::uint32_t size() const {
    return 3 * links_ + static_cast<std::uint32_t>(graph_.nodes.size());
  }

  std::uint32_t of(NodeId node) const {
    return 3 * links_ + static_cast<std::uint32_t>(node.value);
  }

  // The components that a packet on directed link `link` crosses there, and not again: the switch
  // that it enters, the server that it leaves or enters.
  template <typename Visit>
  void visit(std::uint32_t link, Visit&& visit_one) const {
    visit_one(link);
    visit_one(2 * links_ + link / 2);
    const topo::Link& cable = graph_.links[link / 2];
    visit_one(of(fabric::head_of(graph_, link)));
    if (cable.a_nic >= 0 && link % 2 == 0) visit_one(of(cable.a));
  }

  Culprit both_directions(LinkId link) const { return cable_culprit(graph_, link); }

  Culprit culprit(std::uint32_t component) const {
    if (component < 2 * links_) return link_culprit(fabric::directed_link(component));
    if (component < 3 * links_)
      return both_directions(LinkId{static_cast<int>(component - 2 * links_)});
    const NodeId node{static_cast<int>(component - 3 * links_)};
    return graph_.nodes[node.index()].kind == topo::NodeKind::kServer ? server_culprit(node)
                                                                      : switch_culprit(node);
  }

  // Whether the culprit is a cable with one of these directed links, which ascend.
  bool has_any(const Culprit& culprit, std::span<const std::uint32_t> links) const {
    return !links.empty() && is_cable(culprit) &&
           crosses_any(links_to_avoid(graph_, culprit), links);
  }

  double prior(std::uint32_t component, const ExplainOptions& options) const {
    if (component < 3 * links_) return options.prior_link;
    const NodeId node{static_cast<int>(component - 3 * links_)};
    return graph_.nodes[node.index()].kind == topo::NodeKind::kServer ? options.prior_server
                                                                      : options.prior_switch;
  }

 private:
  const topo::Graph& graph_;
  std::uint32_t links_;
};

}  // namespace regatta::diag
