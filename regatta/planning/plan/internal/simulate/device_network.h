// plan/internal/simulate/device_network.h: the cluster as resources that transfers share: both
// directions of every link and of every device's port inside its server, with measured efficiency
// per path class.
#pragma once

#include <optional>
#include <vector>

#include "regatta/base/core/result.h"
#include "regatta/base/core/units.h"
#include "regatta/model/cost/rates.h"
#include "regatta/model/topo/cluster.h"
#include "regatta/model/topo/graph.h"
#include "regatta/planning/plan/internal/simulate/fluid_network.h"

namespace regatta::plan {

// From one device to another.
struct DevicePair {
  topo::DeviceRef from;
  topo::DeviceRef to;
  double share = 1;  // of the bytes that a flow of its set carries
};

// A set of flows that advance together, and the resources that it needs.
struct FlowSet {
  std::vector<ResourceLoad> loads;  // sorted by resource
  Seconds latency;                  // of the slowest path
};

class DeviceNetwork {
 public:
  // Routes between all pairs of devices: with 1024 of them 0.3 to 2 GB, by the number of spines.
  static constexpr int kMaxDevices = 1024;
  // Fails with kInvalidInput above them, and when the rates lack a path class that exists in the
  // cluster.
  static Result<DeviceNetwork> build(const topo::Cluster& cluster, const cost::Rates& rates);

  // Bytes per second by resource: links (forward, backward), then device ports (out, in). The
  // weights of a flow of a less efficient path class are larger.
  const std::vector<double>& capacities() const { return capacities_; }

  // The flows of `pairs` together; one flow per pair, weighted by its share. Fails with kNotFound
  // when a pair has no path.
  Result<FlowSet> flows(const std::vector<DevicePair>& pairs) const;

  // Adds `bytes` of one flow, whatever its share, to `bytes_on`, indexed by resource: without
  // efficiency.
  void add_traffic(const DevicePair& pair, double bytes, std::vector<double>& bytes_on) const;

  // The directed link of a resource below link_resources().
  int link_resources() const { return link_resources_; }
  static topo::DirectedLink link_of(int resource);

  // Position of a device in topo::all_devices(); -1 when the cluster has no such device.
  int device_index(topo::DeviceRef device) const;

 private:
  struct Route {
    std::vector<ResourceLoad> loads;  // weight: share of the flow's bytes
    double inverse_efficiency = 1;
    Seconds latency;
    std::optional<Error> missing;  // set: there is no path, for this reason
  };
  void add_resources(const topo::Cluster& cluster, const topo::Graph& graph);
  Result<Route> make_route(const topo::Cluster& cluster, const topo::Graph& graph,
                           const cost::Rates& rates, const DevicePair& pair) const;
  const Route& route(const DevicePair& pair) const;

  std::vector<double> capacities_;
  std::vector<Route> routes_;  // by from * devices + to
  std::vector<int> first_device_of_;
  std::vector<int> device_count_of_;
  int link_resources_ = 0;
  int devices_ = 0;
};

}  // namespace regatta::plan
