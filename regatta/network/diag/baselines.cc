#include "regatta/network/diag/baselines.h"

#include <algorithm>
#include <map>
#include <set>

namespace regatta::diag {
namespace {

struct Share {
  int bad = 0;
  int all = 0;
  bool is_most() const { return 2 * bad > all; }
};

}  // namespace

std::vector<Culprit> vote_007(const topo::Graph& graph, std::span<const RoundTrip> trips) {
  std::vector<std::set<std::uint32_t>> flows;  // their cables
  double all = 0;
  for (const RoundTrip& trip : trips) {
    if (trip.lost == 0) continue;
    std::set<std::uint32_t> cables;
    for (const auto path : {trip.there, trip.back})
      for (const std::uint32_t link : path)
        cables.insert(link / 2);
    flows.push_back(std::move(cables));
    all += 1;
  }
  std::vector<Culprit> blamed;
  while (!flows.empty()) {
    std::map<std::uint32_t, double> votes;
    for (const auto& cables : flows)
      for (const std::uint32_t number : cables)
        votes[number] += 1 / static_cast<double>(cables.size());
    const auto most =
        std::ranges::max_element(votes, {}, [](const auto& one) { return one.second; });
    if (most->second < 0.01 * all) break;
    const std::uint32_t number = most->first;
    blamed.push_back(cable_culprit(graph, LinkId{static_cast<int>(number)}));
    std::erase_if(flows, [&](const auto& cables) { return cables.contains(number); });
  }
  return blamed;
}

std::vector<Culprit> pingmesh_threshold(const topo::Graph& graph,
                                        std::span<const RoundTrip> trips) {
  std::map<std::uint32_t, Share> nics;
  for (const RoundTrip& trip : trips) {
    if (trip.sent == 0) continue;
    const bool is_bad = 1000.0 * trip.lost > trip.sent;
    for (const std::uint32_t link : {trip.there.front(), trip.there.back()}) {
      nics[link / 2].bad += is_bad ? 1 : 0;
      ++nics[link / 2].all;
    }
  }
  std::map<NodeId, Share> above;  // servers and leaves
  for (const auto& [link, share] : nics)
    for (const NodeId node : {graph.links[link].a, graph.links[link].b}) {
      above[node].bad += share.is_most() ? 1 : 0;
      ++above[node].all;
    }
  std::set<NodeId> bad_nodes;
  std::vector<Culprit> blamed;
  for (const auto& [node, share] : above) {
    if (share.all < 2 || !share.is_most()) continue;
    bad_nodes.insert(node);
    const bool is_server = graph.nodes[node.index()].kind == topo::NodeKind::kServer;
    blamed.push_back(is_server ? server_culprit(node) : switch_culprit(node));
  }
  for (const auto& [link, share] : nics)
    if (share.is_most() && !bad_nodes.contains(graph.links[link].a) &&
        !bad_nodes.contains(graph.links[link].b))
      blamed.push_back(cable_culprit(graph, LinkId{static_cast<int>(link)}));
  return blamed;
}

}  // namespace regatta::diag
