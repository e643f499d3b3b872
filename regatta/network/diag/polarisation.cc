#include "regatta/network/diag/polarisation.h"

#include <algorithm>
#include <cmath>

#include <fmt/core.h>

#include "regatta/base/core/result.h"
#include "regatta/network/fabric/routes.h"

namespace regatta::diag {
namespace {

struct Around {
  std::vector<std::uint32_t> up;          // directed links upwards
  std::vector<std::uint64_t> from_below;  // bytes of each link
};

Around around(const topo::Graph& graph, std::span<const std::uint64_t> bytes, NodeId node) {
  Around found;
  for (const LinkId id : graph.links_of[node.index()]) {
    const std::uint32_t number = fabric::number_of({id, true});
    // A link's end a is the lower one.
    if (graph.links[id.index()].a == node)
      found.up.push_back(number);
    else
      found.from_below.push_back(bytes[number]);
  }
  return found;
}

// Upper bound of the probability that at least `empty` of `boxes` boxes get none of `balls`.
double chance_of_empty(std::size_t balls, std::size_t boxes, std::size_t empty) {
  const auto n = static_cast<double>(boxes);
  const auto k = static_cast<double>(empty);
  const double choices = std::lgamma(n + 1) - std::lgamma(k + 1) - std::lgamma(n - k + 1);
  return std::min(1.0, std::exp(choices + static_cast<double>(balls) * std::log(1 - k / n)));
}

std::string plural(topo::NodeKind kind) {
  switch (kind) {
    case topo::NodeKind::kServer:
      return "servers";
    case topo::NodeKind::kLeaf:
      return "leaves";
    case topo::NodeKind::kSpine:
      return "spines";
    case topo::NodeKind::kSuperSpine:
      break;
  }
  return "super-spines";
}

}  // namespace

std::vector<Polarisation> find_polarisation(const topo::Graph& graph,
                                            std::span<const std::uint64_t> bytes,
                                            const PolarisationOptions& options) {
  REGATTA_CHECK(bytes.size() == 2 * graph.links.size());
  // Leaves are not looked at: what servers send is not sorted yet.
  Polarisation spines;
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    if (graph.nodes[i].kind != topo::NodeKind::kSpine) continue;
    const Around near = around(graph, bytes, NodeId{static_cast<int>(i)});
    std::uint64_t sent = 0;
    for (const std::uint32_t link : near.up)
      sent += bytes[link];
    if (near.up.size() < 2 || near.from_below.empty() || sent == 0) continue;
    const double fair = static_cast<double>(sent) / static_cast<double>(near.up.size());
    std::vector<std::uint32_t> empty;
    for (const std::uint32_t link : near.up)
      if (static_cast<double>(bytes[link]) < options.empty_share * fair) empty.push_back(link);
    if (empty.empty()) continue;
    const double busiest = static_cast<double>(*std::ranges::max_element(near.from_below));
    const auto flows =
        static_cast<std::size_t>(std::ranges::count_if(near.from_below, [&](std::uint64_t count) {
          return static_cast<double>(count) > options.busy_share * busiest;
        }));
    const double chance = chance_of_empty(flows, near.up.size(), empty.size());
    spines.by_chance *= chance;
    if (chance < 1) spines.empty.insert(spines.empty.end(), empty.begin(), empty.end());
  }
  if (spines.empty.empty() || spines.by_chance > options.by_chance_most) return {};
  return {spines};
}

std::string to_string(const topo::Graph& graph, const Polarisation& found) {
  return fmt::format(
      "{} hash as {} do: {} uplinks are empty, as {}; give each switch a seed of its own",
      plural(found.tier), plural(found.below), found.empty.size(),
      graph.links[found.empty.front() / 2].name);
}

}  // namespace regatta::diag
