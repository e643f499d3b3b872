#include "regatta/network/simulate/internal/topology_events.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "regatta/base/core/text.h"
#include "regatta/model/topo/graph_names.h"
#include "regatta/network/fabric/deadlock.h"

namespace regatta::simulate {
namespace {

Error wrong(const Scenario& scenario, const Failure& failure, const std::string& kind,
            const std::string& name, const std::vector<std::string>& names) {
  const std::string nearest = nearest_word(name, names);
  const std::string remedy = nearest.empty() ? fmt::format("the first one is {}", names.front())
                                             : fmt::format("did you mean '{}'?", nearest);
  return {Code::kInvalidInput, fmt::format("{}:{}: no {} is called '{}'; {}", scenario.file,
                                           failure.line, kind, printable(name, 60), remedy)};
}

// How many failures hold a link in a state.
class Counted {
 public:
  // Whether it is the first that does, or the last that did.
  bool add(LinkId link) { return ++count_[link.value] == 1; }
  bool remove(LinkId link) {
    const auto at = count_.find(link.value);
    if (--at->second != 0) return false;
    count_.erase(at);
    return true;
  }
  std::vector<LinkId> all() const {
    std::vector<LinkId> links;
    for (const auto& [link, count] : count_)
      links.push_back(LinkId{link});
    return links;
  }

 private:
  std::map<int, int> count_;
};

enum class What { kDies, kIsWithdrawn, kIsAvoided, kIsBack, kIsUsed };

struct Moment {
  double time;
  What what;
  std::size_t failure;
  bool was_avoided = false;  // kIsUsed: all switches knew
};

std::vector<Moment> moments_of(const std::vector<Failure>& failures) {
  std::vector<Moment> moments;
  for (std::size_t i = 0; i < failures.size(); ++i) {
    const Failure& one = failures[i];
    if (!one.pausing_nic.empty()) continue;
    const double at = one.at.value;
    const double back = one.until.value;
    const bool is_withdrawn = at + one.local.value < back;
    const bool is_avoided = at + one.converged.value < back;
    moments.push_back({at, What::kDies, i});
    if (is_withdrawn) moments.push_back({at + one.local.value, What::kIsWithdrawn, i});
    if (is_avoided) moments.push_back({at + one.converged.value, What::kIsAvoided, i});
    if (back == std::numeric_limits<double>::infinity()) continue;
    moments.push_back({back, What::kIsBack, i});
    const double delay = is_avoided ? one.converged.value : one.local.value;
    if (is_withdrawn) moments.push_back({back + delay, What::kIsUsed, i, is_avoided});
  }
  std::ranges::stable_sort(moments, {}, &Moment::time);
  return moments;
}

}  // namespace

Result<std::vector<LinkId>> links_that_fail(const Scenario& scenario, const Failure& failure,
                                            const topo::Graph& graph) {
  if (!failure.pausing_nic.empty()) return std::vector<LinkId>{};
  if (!failure.link.empty()) {
    if (const auto found = topo::find_link(graph, failure.link)) return std::vector<LinkId>{*found};
    std::vector<std::string> names;
    for (const topo::Link& link : graph.links)
      names.push_back(link.name);
    if (names.empty()) names.emplace_back("none");
    return wrong(scenario, failure, "link", failure.link, names);
  }
  std::vector<std::string> names;
  for (std::size_t node = 0; node < graph.nodes.size(); ++node) {
    if (graph.nodes[node].kind == topo::NodeKind::kServer) continue;
    if (graph.nodes[node].name == failure.switch_name) return graph.links_of[node];
    names.push_back(graph.nodes[node].name);
  }
  if (names.empty()) names.emplace_back("none");
  return wrong(scenario, failure, "switch", failure.switch_name, names);
}

Result<LinkId> pausing_nic_link(const Scenario& scenario, const Failure& failure,
                                const topo::Graph& graph) {
  const auto found = topo::find_link(graph, failure.pausing_nic);
  if (found && graph.links[found->index()].a_nic >= 0) return *found;
  std::vector<std::string> names;
  for (const topo::Link& link : graph.links)
    if (link.a_nic >= 0) names.push_back(link.name);
  if (names.empty()) names.emplace_back("none");
  return wrong(scenario, failure, "link of a NIC", failure.pausing_nic, names);
}

Result<std::vector<TopologyEvent>> topology_events_of(const Scenario& scenario,
                                                      const SimulatedNetwork& network) {
  std::vector<std::vector<LinkId>> links;
  for (const Failure& failure : scenario.failures) {
    REGATTA_TRY(of, links_that_fail(scenario, failure, network.graph));
    links.push_back(std::move(of));
  }
  std::vector<TopologyEvent> outages;
  Counted dead;
  Counted withdrawn;
  Counted avoided;
  for (const Moment& moment : moments_of(scenario.failures)) {
    TopologyEvent outage{.time = moment.time};
    for (const LinkId link : links[moment.failure]) {
      switch (moment.what) {
        case What::kDies:
          if (dead.add(link)) outage.dead.push_back(link);
          break;
        case What::kIsBack:
          if (dead.remove(link)) outage.back.push_back(link);
          break;
        case What::kIsWithdrawn:
          withdrawn.add(link);
          break;
        case What::kIsAvoided:
          avoided.add(link);
          break;
        case What::kIsUsed:
          withdrawn.remove(link);
          if (moment.was_avoided) avoided.remove(link);
          break;
      }
    }
    outage.routes_change = moment.what != What::kDies && moment.what != What::kIsBack;
    outage.withdrawn = withdrawn.all();
    outage.avoided = avoided.all();
    outages.push_back(std::move(outage));
  }
  return outages;
}

fabric::Routes routes_without(const SimulatedNetwork& network, const TopologyEvent& outage) {
  const topo::Graph graph = fabric::without(network.graph, {.links = outage.avoided});
  fabric::Routes routes(graph);
  std::set<std::pair<int, int>> ends;  // switch and link
  for (const LinkId link : outage.withdrawn)
    for (const NodeId end : {graph.links[link.index()].a, graph.links[link.index()].b})
      if (graph.nodes[end.index()].kind != topo::NodeKind::kServer)
        ends.emplace(end.value, link.value);
  for (const auto& [node, link] : ends) {
    for (const NodeId leaf : routes.leaves()) {
      const std::span<const std::uint32_t> hops = routes.next_hops(NodeId{node}, leaf);
      std::vector<std::uint32_t> left(hops.begin(), hops.end());
      std::erase_if(left, [link = link](std::uint32_t hop) {
        return hop / 2 == static_cast<std::uint32_t>(link);
      });
      if (left.size() != hops.size()) routes.set_next_hops(NodeId{node}, leaf, left);
    }
  }
  return routes;
}

}  // namespace regatta::simulate
