#include "regatta/network/simulate/internal/aggregate_links.h"

#include "regatta/network/fabric/routes.h"

namespace regatta::simulate {

AggregateLinks::AggregateLinks(const ScenarioWorkload& workload, fabric::Links& links) {
  const SimulatedNetwork& network = workload.network;
  for (const std::vector<std::uint32_t>& group : workload.rank_classes.classes) {
    for (const std::uint32_t rank : group) {
      const LinkId like = workload.rank_classes.representative_nic[rank];
      const LinkId own = topo::nic_link(network.graph, network.devices[rank].server,
                                        topo::nic_of(network.cluster, network.devices[rank]));
      for (const bool is_up : {true, false})
        add(fabric::number_of({like, is_up}), fabric::number_of({own, is_up}), links);
      add(network.link_out_of(group.front()), network.link_out_of(rank), links);
      add(network.link_into(group.front()), network.link_into(rank), links);
    }
  }
}

void AggregateLinks::add(std::uint32_t first, std::uint32_t link, fabric::Links& links) {
  const auto [at, is_new] = number_of_.try_emplace(first, 0);
  if (is_new) at->second = links.add({links.capacity[first]}, {links.latency[first]});
  // Ranks may share a NIC.
  if (is_told_.insert(link).second) all_.emplace_back(at->second, link);
}

}  // namespace regatta::simulate
