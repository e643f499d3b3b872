#include "bench/faults/fault_suite_network.h"

#include "regatta/base/os/file.h"
#include "regatta/model/topo/addresses.h"
#include "regatta/model/topo/cluster_yaml.h"

namespace regatta {

FaultSuiteNetwork::FaultSuiteNetwork(const topo::Cluster& cluster)
    : graph(build_graph(cluster)),
      routes(graph),
      seeds(topo::hash_seeds(cluster, graph)),
      matrix(probe::plan_matrix(graph, routes, seeds)),
      coverage(cover(graph, matrix)) {}

Result<const FaultSuiteNetwork*> FaultSuiteNetworks::get(const std::string& name) {
  const auto at = all_.find(name);
  if (at != all_.end()) return at->second.get();
  const std::string path = folder_ + "/" + name + ".yaml";
  REGATTA_TRY(text, os::read_file(path));
  REGATTA_TRY(cluster, topo::parse_cluster(text, path));
  return (all_[name] = std::make_unique<FaultSuiteNetwork>(cluster)).get();
}

}  // namespace regatta
