#include "bench/healing/pair_shares.h"

#include <algorithm>

#include "regatta/network/fabric/routes.h"

namespace regatta {
namespace {

// The best share that a server of the leaf gets through to it and from it.
struct LeafEnds {
  double out = 0;
  double in = 0;
};

std::vector<LeafEnds> leaf_ends(const topo::Graph& graph, const DeliveryState& state) {
  std::vector<LeafEnds> ends(graph.nodes.size());
  for (std::size_t link = 0; link < graph.links.size(); ++link) {
    const topo::Link& cable = graph.links[link];
    if (cable.a_nic < 0) continue;
    LeafEnds& its = ends[cable.b.index()];
    its.out = std::max(its.out, state.link[2 * link] * state.node[cable.a.index()]);
    its.in = std::max(its.in, state.link[2 * link + 1] * state.node[cable.a.index()]);
  }
  return ends;
}

}  // namespace

DeliveryState delivery_state(const topo::Graph& graph, std::span<const SequenceFault> faults,
                             Seconds now) {
  DeliveryState state{std::vector<double>(2 * graph.links.size(), 1.0),
                      std::vector<double>(graph.nodes.size(), 1.0),
                      std::vector<bool>(graph.links.size(), true)};
  for (const auto& [fault, is_carrier] : faults) {
    if (!fault.is_broken(now)) continue;
    constexpr double kHalf = 0.5;  // of the flows
    const double share = fault.some_flows ? kHalf : 1 - fault.loss;
    const diag::Culprit& culprit = fault.culprit;
    if (culprit.kind == diag::CulpritKind::kSwitch) state.node[culprit.node.index()] *= share;
    if (culprit.kind == diag::CulpritKind::kServer) state.node[culprit.node.index()] = 0;
    if (culprit.kind == diag::CulpritKind::kLink || culprit.kind == diag::CulpritKind::kNic)
      for (const std::uint32_t link : links_to_avoid(graph, culprit))
        state.link[link] *= share;
    if (is_carrier) state.has_carrier[culprit.link.index()] = false;
  }
  return state;
}

std::vector<PairShare> pair_shares(const topo::Graph& graph, const heal::FabricPaths& paths,
                                   const DeliveryState& state, const heal::Tables* tables) {
  const std::vector<LeafEnds> ends = leaf_ends(graph, state);
  std::vector<PairShare> shares;
  std::vector<double> of_node(graph.nodes.size());
  for (std::size_t i = 0; i < paths.switches.size(); ++i) {
    const NodeId leaf = paths.routes.leaves()[i];
    of_node[leaf.index()] = state.node[leaf.index()];
    for (const NodeId node : paths.switches[i]) {
      const auto parts = tables != nullptr ? tables->parts(node, leaf)
                                           : heal::even_parts(paths.routes.next_hops(node, leaf));
      double sum = 0;
      double weights = 0;
      for (const heal::Part& part : parts) {
        if (!state.has_carrier[part.hop / 2]) continue;
        sum += part.weight * state.link[part.hop] * of_node[paths.end_of[part.hop].index()];
        weights += part.weight;
      }
      of_node[node.index()] = weights > 0 ? state.node[node.index()] * sum / weights : 0;
      const bool is_pair = graph.nodes[node.index()].kind == topo::NodeKind::kLeaf;
      if (is_pair)
        shares.push_back(
            {node, leaf, of_node[node.index()], ends[node.index()].out * ends[leaf.index()].in});
    }
  }
  return shares;
}

}  // namespace regatta
