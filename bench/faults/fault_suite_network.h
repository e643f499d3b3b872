// bench/faults/fault_suite_network.h: the networks of clusters/ with their probes, for the suites
// that break parts of them.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "regatta/base/core/result.h"
#include "regatta/model/topo/cluster.h"
#include "regatta/model/topo/graph.h"
#include "regatta/network/fabric/routes.h"
#include "regatta/network/probe/matrix.h"

namespace regatta {

// Names of the clusters/*.yaml on which random faults are drawn, in turn.
inline constexpr std::array kFaultSuiteClusters = {"two-tiers", "three-tiers", "two-nics-a-leaf",
                                                   "eight-rails"};

struct FaultSuiteNetwork {
  explicit FaultSuiteNetwork(const topo::Cluster& cluster);

  topo::Graph graph;
  fabric::Routes routes;
  std::vector<std::uint32_t> seeds;
  probe::Matrix matrix;
  probe::Coverage coverage;
};

// Networks by name, built once. Not thread safe; what get() returned may be read by any thread.
class FaultSuiteNetworks {
 public:
  // `folder`: with the cluster files.
  explicit FaultSuiteNetworks(std::string folder) : folder_(std::move(folder)) {}

  Result<const FaultSuiteNetwork*> get(const std::string& name);

 private:
  std::string folder_;
  std::map<std::string, std::unique_ptr<FaultSuiteNetwork>> all_;
};

}  // namespace regatta
