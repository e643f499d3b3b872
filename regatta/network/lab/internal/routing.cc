#include "regatta/network/lab/internal/routing.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>

namespace regatta::lab {
namespace {

// Follows the routes of all nodes towards their destinations. Routes shorten the path at every hop,
// so the search ends.
class Search {
 public:
  Search(const Blueprint& blueprint, const std::vector<bool>& down)
      : blueprint_(blueprint), down_(down), leads_(blueprint.routes.size()) {
    for (std::size_t i = 0; i < blueprint.routes.size(); ++i) {
      const Route& route = blueprint.routes[i];
      routes_[{route.node.index(), route.last.index()}] = i;
    }
  }

  bool hop_leads(const Route& route, const Hop& hop) {
    if (down_[hop.cable.index()]) return false;
    const Cable& cable = blueprint_.cables[hop.cable.index()];
    const NodeId neighbour = cable.a.node == route.node ? cable.b.node : cable.a.node;
    if (neighbour == blueprint_.cables[route.last.index()].b.node) {
      return !down_[route.last.index()];
    }
    const auto next = routes_.find({neighbour.index(), route.last.index()});
    return next != routes_.end() && route_leads(next->second);
  }

 private:
  bool route_leads(std::size_t index) {
    if (leads_[index]) return *leads_[index];
    bool leads = false;
    for (const Hop& hop : blueprint_.routes[index].hops)
      leads = leads || hop_leads(blueprint_.routes[index], hop);
    leads_[index] = leads;
    return leads;
  }

  const Blueprint& blueprint_;
  const std::vector<bool>& down_;
  std::vector<std::optional<bool>> leads_;                             // per route, once known
  std::map<std::pair<std::size_t, std::size_t>, std::size_t> routes_;  // by node and last cable
};

}  // namespace

std::vector<std::vector<Hop>> hops_left(const Blueprint& blueprint, const std::vector<bool>& down) {
  Search search(blueprint, down);
  std::vector<std::vector<Hop>> left;
  left.reserve(blueprint.routes.size());
  for (const Route& route : blueprint.routes) {
    left.push_back(route.hops);
    if (!blueprint.nodes[route.node.index()].is_switch) continue;
    auto& hops = left.back();
    hops.erase(std::remove_if(hops.begin(), hops.end(),
                              [&](const Hop& hop) { return !search.hop_leads(route, hop); }),
               hops.end());
  }
  return left;
}

}  // namespace regatta::lab
