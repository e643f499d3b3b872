#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <tuple>
#include <utility>

#include "regatta/network/fabric/port_plan.h"

namespace regatta::fabric {
namespace {

int block_of(const topo::Fabric& fabric, ServerId server) {
  return fabric.servers_per_leaf > 0 ? server.value / fabric.servers_per_leaf : 0;
}

int group_of_block(const topo::Fabric& fabric, int block) {
  if (fabric.tiers != 3 || fabric.leaves_per_group <= 0) return 0;
  return block / (fabric.leaves_per_group / fabric.rails);
}

int group_of(const topo::Fabric& fabric, ServerId server) {
  return group_of_block(fabric, block_of(fabric, server));
}

double pairs_of(double things) {
  return things * (things - 1) / 2;
}

// The expected number of `flows` that share a link when each takes one of `links` by chance.
double colliding(double flows, double links) {
  if (flows <= 1 || links < 1) return 0;
  return flows * (1 - std::pow(1 - 1 / links, flows - 1));
}

// Takes `count` things from parts of these sizes: all from the smallest part that has enough; else
// the whole largest part, and the rest likewise. Returns the index of each part and its number.
std::vector<std::pair<std::size_t, std::size_t>> fill(std::vector<std::size_t> sizes,
                                                      std::size_t count) {
  std::vector<std::pair<std::size_t, std::size_t>> filled;
  while (count > 0) {
    std::size_t best = sizes.size();
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      if (sizes[i] == 0) continue;
      const auto is_before = [&](std::size_t a, std::size_t b) {
        const bool fits_a = sizes[a] >= count;
        const bool fits_b = sizes[b] >= count;
        if (fits_a != fits_b) return fits_a;
        return fits_a ? sizes[a] < sizes[b] : sizes[a] > sizes[b];
      };
      if (best == sizes.size() || is_before(i, best)) best = i;
    }
    if (best == sizes.size()) return {};
    const std::size_t taken = std::min(count, sizes[best]);
    filled.emplace_back(best, taken);
    count -= taken;
    sizes[best] = 0;
  }
  return filled;
}

using Block = std::vector<ServerId>;
using Group = std::vector<Block>;

std::vector<std::size_t> sizes_of(const Group& group) {
  std::vector<std::size_t> sizes;
  for (const Block& block : group)
    sizes.push_back(block.size());
  return sizes;
}

std::size_t size_of(const Group& group) {
  std::size_t size = 0;
  for (const Block& block : group)
    size += block.size();
  return size;
}

std::vector<Group> groups_of(const topo::Fabric& fabric, std::span<const ServerId> free) {
  std::map<int, std::map<int, Block>> found;
  for (const ServerId server : free)
    found[group_of(fabric, server)][block_of(fabric, server)].push_back(server);
  std::vector<Group> groups;
  for (auto& [group, blocks] : found) {
    groups.emplace_back();
    for (auto& [number, block] : blocks)
      groups.back().push_back(std::move(block));
  }
  return groups;
}

// A choice, and what it leaves behind.
struct Choice {
  std::vector<ServerId> servers;
  double links = 0;
  std::size_t left_of_blocks = 0;  // servers below leaves that it uses,
  std::size_t left_of_groups = 0;  // and in its groups

  bool is_before(const Choice& other) const {
    return std::tie(links, left_of_blocks, left_of_groups) <
           std::tie(other.links, other.left_of_blocks, other.left_of_groups);
  }
};

// The smallest group that holds `count`; none: the largest one.
std::size_t group_for(const std::vector<Group>& groups, std::size_t count) {
  std::vector<std::size_t> sizes;
  sizes.reserve(groups.size());
  for (const Group& group : groups)
    sizes.push_back(size_of(group));
  return fill(sizes, std::min(count, size_of(*std::ranges::max_element(groups, {}, size_of))))
      .front()
      .first;
}

// As many as there are of `count` from group `first`, and the others from groups as few as can be.
Choice choose_from(const topo::Cluster& cluster, std::vector<Group> groups, std::size_t first,
                   std::size_t count) {
  Choice choice;
  for (std::size_t at = first; choice.servers.size() < count;) {
    const Group& group = groups[at];
    const std::size_t taken = std::min(count - choice.servers.size(), size_of(group));
    choice.left_of_groups += size_of(group) - taken;
    for (const auto& [block, servers] : fill(sizes_of(group), taken)) {
      const auto begin = group[block].begin();
      choice.servers.insert(choice.servers.end(), begin,
                            begin + static_cast<std::ptrdiff_t>(servers));
      choice.left_of_blocks += group[block].size() - servers;
    }
    groups.erase(groups.begin() + static_cast<std::ptrdiff_t>(at));
    if (choice.servers.size() < count) at = group_for(groups, count - choice.servers.size());
  }
  // By number, servers of a set of leaves, and such of a group, come one after the other.
  std::ranges::sort(choice.servers);
  choice.links = score_servers(cluster, choice.servers).links;
  return choice;
}

}  // namespace

bool is_better(const ServerGroupScore& one, const ServerGroupScore& other) {
  return std::tie(one.links, one.collisions) < std::tie(other.links, other.collisions);
}

ServerGroupScore score_servers(const topo::Cluster& cluster, std::span<const ServerId> servers) {
  const topo::Fabric& fabric = cluster.fabric;
  ServerGroupScore score;
  if (servers.size() < 2) return score;
  std::map<int, int> in_block;
  std::map<int, int> in_group;
  std::map<int, int> leave_block;
  std::map<int, int> leave_group;
  for (std::size_t i = 0; i < servers.size(); ++i) {
    const ServerId next = servers[(i + 1) % servers.size()];
    const int block = block_of(fabric, servers[i]);
    const int group = group_of(fabric, servers[i]);
    ++in_block[block];
    ++in_group[group];
    if (block_of(fabric, next) != block) ++leave_block[block];
    if (group_of(fabric, next) != group) ++leave_group[group];
  }
  const double all = pairs_of(static_cast<double>(servers.size()));
  double leaf_pairs = 0;
  double group_pairs = 0;
  for (const auto& [block, count] : in_block)
    leaf_pairs += pairs_of(count);
  for (const auto& [group, count] : in_group)
    group_pairs += pairs_of(count);
  score.same_leaf = leaf_pairs / all;
  score.same_group = (group_pairs - leaf_pairs) / all;
  score.across = (all - group_pairs) / all;
  score.links = 2 * score.same_leaf + 4 * score.same_group + 6 * score.across;
  const double nics = cluster.type_of(servers.front()).nic_count;
  for (const auto& [block, hops] : leave_block) {
    score.leaf_hops += hops;
    // Each rail has its leaf.
    score.collisions +=
        fabric.rails * colliding(hops * nics / fabric.rails, uplinks_of_leaf(fabric));
  }
  for (const auto& [group, hops] : leave_group) {
    score.group_hops += hops;
    const double links = static_cast<double>(uplinks_of_group(fabric)) / fabric.planes;
    score.collisions += fabric.planes * colliding(hops * nics / fabric.planes, links);
  }
  return score;
}

HopScore score_hops(const topo::Cluster& cluster, std::span<const ServerHop> hops) {
  const topo::Fabric& fabric = cluster.fabric;
  HopScore score;
  std::map<int, int> leave_block;
  std::map<int, int> leave_group;
  for (const ServerHop& hop : hops) {
    ++score.hops;
    const int block = block_of(fabric, hop.from);
    const int group = group_of(fabric, hop.from);
    if (hop.from == hop.to) {
      ++score.in_server;
      continue;
    }
    const bool leaves_block = block_of(fabric, hop.to) != block;
    const bool leaves_group = group_of(fabric, hop.to) != group;
    if (leaves_block) ++leave_block[block];
    if (leaves_group) ++leave_group[group];
    ++(leaves_group ? score.across : leaves_block ? score.in_group : score.in_leaf);
  }
  if (score.hops == 0) return score;
  score.links = (2.0 * score.in_leaf + 4.0 * score.in_group + 6.0 * score.across) / score.hops;
  for (const auto& [block, flows] : leave_block)
    score.collisions += fabric.rails * colliding(static_cast<double>(flows) / fabric.rails,
                                                 uplinks_of_leaf(fabric));
  for (const auto& [group, flows] : leave_group)
    score.collisions +=
        fabric.planes * colliding(static_cast<double>(flows) / fabric.planes,
                                  static_cast<double>(uplinks_of_group(fabric)) / fabric.planes);
  return score;
}

bool is_better(const HopScore& one, const HopScore& other) {
  return std::tie(one.links, one.collisions) < std::tie(other.links, other.collisions);
}

std::vector<ServerId> choose_servers(const topo::Cluster& cluster, std::span<const ServerId> free,
                                     std::size_t count) {
  if (count == 0 || free.size() < count) return {};
  const std::vector<Group> groups = groups_of(cluster.fabric, free);
  Choice best;
  for (std::size_t first = 0; first < groups.size(); ++first) {
    Choice choice = choose_from(cluster, groups, first, count);
    if (best.servers.empty() || choice.is_before(best)) best = std::move(choice);
  }
  return best.servers;
}

}  // namespace regatta::fabric
