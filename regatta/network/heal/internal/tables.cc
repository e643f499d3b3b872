#include "regatta/network/heal/internal/tables.h"

#include <algorithm>

namespace regatta::heal {
namespace {

std::vector<std::uint32_t> without(std::span<const std::uint32_t> hops,
                                   std::span<const std::uint32_t> taken) {
  std::vector<std::uint32_t> rest;
  for (const std::uint32_t hop : hops)
    if (std::ranges::find(taken, hop) == taken.end()) rest.push_back(hop);
  return rest;
}

}  // namespace

std::vector<std::uint32_t> hops_of(std::span<const Part> parts) {
  std::vector<std::uint32_t> hops;
  for (const Part& part : parts)
    if (std::ranges::find(hops, part.hop) == hops.end()) hops.push_back(part.hop);
  return hops;
}

std::vector<Part> Tables::parts(NodeId node, NodeId leaf) const {
  const auto found = altered_.find({leaf.value, node.value});
  return found == altered_.end() ? even_parts(paths_.routes.next_hops(node, leaf)) : found->second;
}

void Tables::set(NodeId node, NodeId leaf, std::vector<Part> parts) {
  if (parts == even_parts(paths_.routes.next_hops(node, leaf))) {
    altered_.erase({leaf.value, node.value});
  } else {
    altered_[{leaf.value, node.value}] = std::move(parts);
  }
}

std::vector<RouteChange> Tables::changes(const Decision& decision) const {
  std::map<Key, std::span<const std::uint32_t>> wanted;
  for (const auto& [key, parts] : altered_)
    wanted[key] = paths_.routes.next_hops(NodeId{key.second}, NodeId{key.first});
  for (const Withdrawal& withdrawal : decision.withdrawals)
    wanted[{withdrawal.leaf.value, withdrawal.node.value}] = withdrawal.left;
  std::vector<RouteChange> changes;
  for (const auto& [key, left] : wanted) {
    RouteChange change{NodeId{key.second}, NodeId{key.first}, {}, {}, {}};
    const auto all = paths_.routes.next_hops(change.node, change.leaf);
    const std::vector<Part> now = parts(change.node, change.leaf);
    change.parts = respread(now, all, left);
    if (change.parts == now) continue;
    const auto has = hops_of(now);
    change.withdrawn = without(has, left);
    change.returned = without(left, has);
    changes.push_back(std::move(change));
  }
  const auto& leaves = paths_.routes.leaves();
  std::stable_partition(changes.begin(), changes.end(), [&](const RouteChange& change) {
    return std::ranges::find(leaves, change.node) != leaves.end();
  });
  return changes;
}

void Tables::apply(std::span<const RouteChange> changes) {
  for (const RouteChange& change : changes)
    set(change.node, change.leaf, change.parts);
}

std::vector<Fault> Tables::missing() const {
  std::vector<Fault> faults;
  for (const auto& [key, parts] : altered_) {
    const NodeId leaf{key.first};
    const auto all = paths_.routes.next_hops(NodeId{key.second}, leaf);
    for (const std::uint32_t hop : without(all, hops_of(parts)))
      faults.push_back({Place::kHop, hop, leaf, Harm::kBlackHole});
  }
  return faults;
}

std::vector<RouteChange> Tables::through(NodeId node, std::uint32_t link) const {
  std::vector<RouteChange> routes;
  for (const NodeId leaf : paths_.routes.leaves()) {
    auto installed = parts(node, leaf);
    const auto hops = hops_of(installed);
    if (std::ranges::find(hops, link) != hops.end())
      routes.push_back({node, leaf, std::move(installed), {}, {}});
  }
  return routes;
}

}  // namespace regatta::heal
