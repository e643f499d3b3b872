#include "regatta/network/simulate/internal/rank_classes.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

namespace regatta::simulate {
namespace {

// Numbers for values in the order in which they come.
template <typename Key>
class Numbers {
 public:
  std::uint32_t of(Key key) {
    return numbers_.try_emplace(std::move(key), static_cast<std::uint32_t>(numbers_.size()))
        .first->second;
  }

 private:
  std::map<Key, std::uint32_t> numbers_;
};

using Colors = std::vector<std::uint32_t>;

// By what is said of each rank alone: its sets, its type of server, where its NIC is cabled.
Colors own_colors(const SimulatedNetwork& network, std::span<const std::vector<std::uint32_t>> sets,
                  std::span<const std::uint64_t> marks, std::span<const LinkId> nics) {
  std::vector<Colors> sets_of(network.devices.size());
  for (std::uint32_t set = 0; set < sets.size(); ++set)
    for (const std::uint32_t rank : sets[set])
      sets_of[rank].push_back(set);
  Numbers<std::tuple<Colors, std::string, int, double, double, std::uint64_t>> numbers;
  Colors colors;
  for (std::size_t rank = 0; rank < network.devices.size(); ++rank) {
    const ServerId server = network.devices[rank].server;
    const topo::Link& link = network.graph.links[nics[rank].index()];
    colors.push_back(numbers.of({sets_of[rank], network.cluster.servers[server.index()].type,
                                 link.b.value, link.rate.value, link.latency.value,
                                 marks.empty() ? 0 : marks[nics[rank].index()]}));
  }
  return colors;
}

// Servers alike: what is said of each of their ranks alone, and which of them share a NIC.
std::vector<std::uint32_t> kinds_of_servers(const SimulatedNetwork& network, const Colors& own,
                                            std::span<const LinkId> nics) {
  Numbers<std::vector<std::pair<std::uint32_t, int>>> numbers;
  std::vector<std::uint32_t> kinds;
  for (std::uint32_t first = 0, last = 0; first < nics.size(); first = last) {
    std::vector<std::pair<std::uint32_t, int>> all;
    const ServerId server = network.devices[first].server;
    for (last = first; last < nics.size() && network.devices[last].server == server; ++last)
      all.emplace_back(own[last], nics[last].value - nics[first].value);
    kinds.push_back(numbers.of(std::move(all)));
  }
  return kinds;
}

// Domains alike: of the same kinds of servers.
std::vector<std::uint32_t> kinds_of_domains(const SimulatedNetwork& network,
                                            std::span<const std::uint32_t> servers) {
  std::vector<Colors> held(network.domain_ranks.size());
  for (std::size_t server = 0; server < servers.size(); ++server)
    held[as_index(network.domain_of[server])].push_back(servers[server]);
  Numbers<Colors> numbers;
  std::vector<std::uint32_t> kinds;
  for (Colors& one : held) {
    std::ranges::sort(one);
    kinds.push_back(numbers.of(std::move(one)));
  }
  return kinds;
}

}  // namespace

Result<RankClasses> find_rank_classes(const SimulatedNetwork& network,
                                      std::span<const std::vector<std::uint32_t>> sets,
                                      std::span<const std::uint64_t> marks) {
  std::vector<LinkId> nics;
  for (const topo::DeviceRef device : network.devices) {
    REGATTA_TRY(nic, network.nic(device));
    nics.push_back(nic);
  }
  const Colors own = own_colors(network, sets, marks, nics);
  RankClasses rank_classes{.classes = {},
                           .class_of = Colors(network.devices.size(), RankClasses::kNoClass),
                           .representative_nic = nics};
  Numbers<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t, Colors>> groups;
  std::map<std::pair<std::uint32_t, Colors>, LinkId> nic_of;
  std::vector<bool> is_in_a_set(network.devices.size(), false);
  for (const std::vector<std::uint32_t>& set : sets)
    for (const std::uint32_t rank : set)
      is_in_a_set[rank] = true;
  const std::vector<std::uint32_t> kinds = kinds_of_servers(network, own, nics);
  const std::vector<std::uint32_t> domains = kinds_of_domains(network, kinds);
  for (std::uint32_t first = 0, last = 0; first < nics.size(); first = last) {
    const ServerId server = network.devices[first].server;
    while (last < nics.size() && network.devices[last].server == server)
      ++last;
    const std::uint32_t kind = kinds[server.index()];
    for (std::uint32_t rank = first; rank < last; ++rank) {
      Colors behind_nic;
      for (std::uint32_t other = first; other < last; ++other)
        if (nics[other] == nics[rank]) behind_nic.push_back(own[other]);
      std::ranges::sort(behind_nic);
      rank_classes.representative_nic[rank] =
          nic_of.try_emplace({kind, behind_nic}, nics[rank]).first->second;
      if (!is_in_a_set[rank]) continue;
      const std::uint32_t domain = domains[as_index(network.domain_of[server.index()])];
      const std::uint32_t group = groups.of({domain, kind, own[rank], behind_nic});
      if (group == rank_classes.classes.size()) rank_classes.classes.emplace_back();
      rank_classes.classes[group].push_back(rank);
      rank_classes.class_of[rank] = group;
    }
  }
  return rank_classes;
}

}  // namespace regatta::simulate
