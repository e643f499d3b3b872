#include "regatta/network/fabric/internal/packet/traffic_parts.h"

#include <algorithm>
#include <numeric>

namespace regatta::fabric::packet {
namespace {

// Pairs that have to do with each other.
class Sets {
 public:
  explicit Sets(std::size_t pairs) : up_(pairs), count_(pairs) {
    std::iota(up_.begin(), up_.end(), 0U);
  }

  std::uint32_t find(std::uint32_t pair) {
    while (up_[pair] != pair)
      pair = up_[pair] = up_[up_[pair]];
    return pair;
  }
  void join(std::uint32_t a, std::uint32_t b) {
    a = find(a);
    b = find(b);
    if (a == b) return;
    up_[std::max(a, b)] = std::min(a, b);
    --count_;
  }
  std::size_t count() const { return count_; }

 private:
  std::vector<std::uint32_t> up_;
  std::size_t count_;
};

void join_by_links(const PacketNetwork& network, std::uint32_t connections, Sets& sets) {
  std::vector<std::uint32_t> first(network.links.size(), kNone);  // pair on each link
  for (std::uint32_t connection = 0; connection < network.path_of.size(); ++connection) {
    if (network.path_of[connection] == kNone) continue;
    const std::uint32_t pair = connection / connections;
    for (std::uint32_t at = network.path_of[connection];; ++at) {
      const std::uint32_t link = network.paths[at];
      if ((link & PacketNetwork::kLoopsBack) != 0) break;  // nowhere, or round and round
      if (first[link] == kNone)
        first[link] = pair;
      else
        sets.join(first[link], pair);
      if (network.links[link].is_to_host) break;
    }
  }
}

// Which part each pair is in.
std::vector<std::uint32_t> part_of_pairs(Sets& sets, std::size_t pairs, std::size_t most) {
  std::vector<std::uint32_t> size(pairs, 0);
  for (std::uint32_t pair = 0; pair < pairs; ++pair)
    ++size[sets.find(pair)];
  std::vector<std::uint32_t> roots;
  for (std::uint32_t pair = 0; pair < pairs; ++pair)
    if (size[pair] > 1) roots.push_back(pair);
  std::ranges::stable_sort(roots, std::greater<>(), [&](std::uint32_t root) { return size[root]; });
  const auto last = static_cast<std::uint32_t>(std::min(roots.size(), most - 1));
  std::vector<std::uint32_t> part_of_root(pairs, last);  // those of one pair
  for (std::uint32_t i = 0; i < roots.size(); ++i)
    part_of_root[roots[i]] = std::min(i, last - 1);
  std::vector<std::uint32_t> part(pairs);
  for (std::uint32_t pair = 0; pair < pairs; ++pair)
    part[pair] = part_of_root[sets.find(pair)];
  return part;
}

// Takes pairs and flows over into their parts, in order.
class Divider {
 public:
  Divider(const PacketSetup& setup, const FlowGraph& traffic,
          std::vector<std::uint32_t> part_of_pair)
      : setup_(setup),
        traffic_(traffic),
        part_of_pair_(std::move(part_of_pair)),
        number_of_pair_(part_of_pair_.size(), kNone),
        number_of_flow_(traffic.flows().size()) {}

  std::vector<TrafficPart> divide() {
    std::vector<TrafficPart> parts(1 + *std::ranges::max_element(part_of_pair_));
    for (TrafficPart& part : parts)
      part.pairs.connections = setup_.pairs.connections;
    for (std::uint32_t flow = 0; flow < number_of_flow_.size(); ++flow)
      add_flow(flow, parts[part_of_pair_[traffic_.flows()[flow].path]]);
    for (const FlowGraph::Dependency& wait : traffic_.dependencies()) {
      const std::uint32_t flow = wait.flow_and_after / 2;
      parts[part_of_pair_[traffic_.flows()[flow].path]].traffic.depend(
          number_of_flow_[flow], number_of_flow_[wait.before],
          static_cast<After>(wait.flow_and_after % 2));
    }
    std::erase_if(parts, [](const TrafficPart& part) { return part.flows.empty(); });
    if (setup_.intra_server_links != nullptr)
      for (TrafficPart& part : parts)
        part.intra_server_links.links = setup_.intra_server_links->links;
    return parts;
  }

 private:
  void add_flow(std::uint32_t flow, TrafficPart& part) {
    const FlowGraph::Flow& one = traffic_.flows()[flow];
    std::uint32_t& pair = number_of_pair_[one.path];
    if (pair == kNone) pair = add_pair(one.path, part);
    part.flows.push_back(flow);
    number_of_flow_[flow] =
        part.traffic.add(pair, {static_cast<long long>(one.bytes)}, {one.delay});
  }

  std::uint32_t add_pair(std::uint32_t of, TrafficPart& part) const {
    const NicPairs& all = setup_.pairs;
    const std::uint32_t pair = part.pairs.add(all.pairs[of].from, all.pairs[of].to);
    for (std::uint32_t i = 0; i < all.connections; ++i)
      part.pairs.ports[pair * all.connections + i] = all.ports[of * all.connections + i];
    part.intra_server_links.paths.emplace_back();
    if (setup_.intra_server_links != nullptr && of < setup_.intra_server_links->paths.size())
      part.intra_server_links.paths.back() = setup_.intra_server_links->paths[of];
    return pair;
  }

  const PacketSetup& setup_;
  const FlowGraph& traffic_;
  const std::vector<std::uint32_t> part_of_pair_;
  std::vector<std::uint32_t> number_of_pair_;  // in its part
  std::vector<std::uint32_t> number_of_flow_;
};

}  // namespace

std::vector<TrafficPart> independent_parts(const PacketNetwork& network, const PacketSetup& setup,
                                           const FlowGraph& traffic, std::size_t most) {
  const std::size_t pairs = setup.pairs.pairs.size();
  Sets sets(pairs);
  // In a collective all soon wait for each other, so that this ends soon.
  for (const FlowGraph::Dependency& wait : traffic.dependencies()) {
    if (sets.count() <= 1) return {};
    sets.join(traffic.flows()[wait.flow_and_after / 2].path, traffic.flows()[wait.before].path);
  }
  join_by_links(network, setup.pairs.connections, sets);
  if (sets.count() <= 1 || traffic.flows().empty()) return {};
  std::vector<TrafficPart> parts =
      Divider(setup, traffic, part_of_pairs(sets, pairs, most)).divide();
  if (parts.size() < 2) parts.clear();
  return parts;
}

}  // namespace regatta::fabric::packet
