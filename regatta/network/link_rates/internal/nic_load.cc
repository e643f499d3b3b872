#include "regatta/network/link_rates/internal/nic_load.h"

#include <algorithm>
#include <map>
#include <set>

namespace regatta::link_rates {
namespace {

constexpr Seconds kWindow{0.2};  // of one rate, at least
// A report that was written before a train ended may come after the news of its end.
constexpr Seconds kSettles{0.02};

// Marks all links that packets from the leaf `from` to the leaf `to` may take.
void mark(const topo::Graph& graph, const fabric::Routes& routes, NodeId from, NodeId to,
          std::vector<bool>& marked) {
  std::set<NodeId> seen{from};
  std::vector<NodeId> open{from};
  while (!open.empty()) {
    const NodeId node = open.back();
    open.pop_back();
    for (const std::uint32_t link : routes.next_hops(node, to)) {
      marked[link] = true;
      const NodeId next = fabric::head_of(graph, link);
      if (next != to && seen.insert(next).second) open.push_back(next);
    }
  }
}

}  // namespace

void NicLoad::end_train(Bytes sent, Bytes received, Seconds now) {
  --trains_;
  train_ended_ = now;
  train_sent_ += sent;
  train_received_ += received;
}

bool NicLoad::add(std::uint64_t sent, std::uint64_t received, Seconds now) {
  if (trains_ > 0 || now - train_ended_ < kSettles) return false;
  const bool has_started_anew = sent < base_sent_ || received < base_received_;
  if (has_base_ && !has_started_anew && now - base_at_ < kWindow) return false;
  const bool shows = has_base_ && !has_started_anew;
  if (shows) {
    const auto others = [](std::uint64_t all, std::uint64_t before, Bytes of_trains) {
      return std::max(0.0,
                      static_cast<double>(all - before) - static_cast<double>(of_trains.value));
    };
    const double bytes = std::max(others(sent, base_sent_, train_sent_),
                                  others(received, base_received_, train_received_));
    rate_.value = bytes / (now - base_at_).value;
    since_ = base_at_;
  }
  has_base_ = true;
  base_sent_ = sent;
  base_received_ = received;
  base_at_ = now;
  train_sent_ = {};
  train_received_ = {};
  return shows;
}

std::vector<std::uint32_t> links_between_leaves(const topo::Graph& graph,
                                                const fabric::Routes& routes, NodeId from,
                                                NodeId to) {
  std::vector<bool> marked(2 * graph.links.size());
  mark(graph, routes, from, to, marked);
  std::vector<std::uint32_t> links;
  for (std::uint32_t link = 0; link < marked.size(); ++link)
    if (marked[link]) links.push_back(link);
  return links;
}

std::vector<bool> links_of_traffic(const topo::Graph& graph, const fabric::Routes& routes,
                                   const std::vector<LinkId>& busy) {
  std::vector<bool> marked(2 * graph.links.size());
  std::map<int, std::set<NodeId>> leaves;  // by NIC number: rails do not meet
  for (const LinkId nic : busy) {
    marked[fabric::number_of({nic, true})] = true;
    marked[fabric::number_of({nic, false})] = true;
    leaves[graph.links[nic.index()].a_nic].insert(graph.links[nic.index()].b);
  }
  for (const auto& [rail, of_rail] : leaves)
    for (const NodeId from : of_rail)
      for (const NodeId to : of_rail)
        if (from != to) mark(graph, routes, from, to, marked);
  if (busy.size() != 1) return marked;
  const NodeId leaf = graph.links[busy.front().index()].b;
  for (const NodeId other : routes.leaves()) {
    if (other == leaf) continue;
    mark(graph, routes, leaf, other, marked);
    mark(graph, routes, other, leaf, marked);
  }
  return marked;
}

}  // namespace regatta::link_rates
