#include "regatta/planning/plan/internal/simulate/device_network.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "regatta/base/core/ids.h"
#include "regatta/base/core/result.h"

namespace regatta::plan {
namespace {

const cost::PathRates* find_path(const cost::Rates& rates, cost::PathClass path) {
  for (const cost::PathRates& one : rates.paths) {
    if (one.path == path) return &one;
  }
  return nullptr;
}

int resource_of(const topo::DirectedLink& link) {
  return 2 * link.link.value + (link.forward ? 0 : 1);
}

}  // namespace

topo::DirectedLink DeviceNetwork::link_of(int resource) {
  return {LinkId{resource / 2}, resource % 2 == 0};
}

// Links first, then two ports per device in the order of all_devices().
void DeviceNetwork::add_resources(const topo::Cluster& cluster, const topo::Graph& graph) {
  link_resources_ = 2 * static_cast<int>(graph.links.size());
  for (const topo::Link& link : graph.links)
    capacities_.insert(capacities_.end(), 2, link.rate.value);
  for (std::size_t s = 0; s < cluster.servers.size(); ++s) {
    const topo::ServerType& type = cluster.type_of(ServerId{static_cast<int>(s)});
    first_device_of_.push_back(devices_);
    device_count_of_.push_back(type.device_count);
    devices_ += type.device_count;
    capacities_.insert(capacities_.end(), 2 * static_cast<std::size_t>(type.device_count),
                       type.intra.bandwidth.value);
  }
}

Result<DeviceNetwork::Route> DeviceNetwork::make_route(const topo::Cluster& cluster,
                                                       const topo::Graph& graph,
                                                       const cost::Rates& rates,
                                                       const DevicePair& pair) const {
  Route route;
  if (pair.from == pair.to) return route;
  if (pair.from.server == pair.to.server) {
    route.loads = {{link_resources_ + 2 * device_index(pair.from), 1.0},
                   {link_resources_ + 2 * device_index(pair.to) + 1, 1.0}};
  } else {
    const auto shares = topo::ecmp_shares(graph, pair.from.server, topo::nic_of(cluster, pair.from),
                                          pair.to.server, topo::nic_of(cluster, pair.to));
    if (!shares) {
      route.missing = shares.error();
      return route;
    }
    for (const topo::LinkShare& share : *shares)
      route.loads.push_back({resource_of(share.link), share.share});
  }
  const cost::PathClass path = cost::path_class(cluster, pair.from, pair.to);
  const cost::PathRates* known = find_path(rates, path);
  if (known == nullptr) {
    return Error{Code::kInvalidInput, "rates (" + rates.source + "): no path \"" +
                                          std::string(cost::to_string(path)) +
                                          "\", which the cluster has; run `regatta measure` again"};
  }
  route.latency = known->latency;
  route.inverse_efficiency = known->described / known->bandwidth;
  return route;
}

Result<DeviceNetwork> DeviceNetwork::build(const topo::Cluster& cluster, const cost::Rates& rates) {
  const std::vector<topo::DeviceRef> devices = topo::all_devices(cluster);
  if (devices.size() > static_cast<std::size_t>(kMaxDevices)) {
    return Error{Code::kInvalidInput,
                 fmt::format("cluster {}: {} devices are more than the {} whose every message is "
                             "simulated; name fewer servers, or plan for a cluster of GPUs",
                             cluster.name, devices.size(), kMaxDevices)};
  }
  DeviceNetwork network;
  const topo::Graph graph = topo::build_graph(cluster);
  network.add_resources(cluster, graph);
  for (const topo::DeviceRef from : devices) {
    for (const topo::DeviceRef to : devices) {
      REGATTA_TRY(route, network.make_route(cluster, graph, rates, {from, to}));
      network.routes_.push_back(std::move(route));
    }
  }
  return network;
}

int DeviceNetwork::device_index(topo::DeviceRef device) const {
  if (device.server.value < 0 || device.server.index() >= first_device_of_.size()) return -1;
  if (device.index < 0 || device.index >= device_count_of_[device.server.index()]) return -1;
  return first_device_of_[device.server.index()] + device.index;
}

const DeviceNetwork::Route& DeviceNetwork::route(const DevicePair& pair) const {
  const int from = device_index(pair.from);
  const int to = device_index(pair.to);
  REGATTA_CHECK(from >= 0 && to >= 0 && from != to);
  return routes_[static_cast<std::size_t>(from) * static_cast<std::size_t>(devices_) +
                 static_cast<std::size_t>(to)];
}

Result<FlowSet> DeviceNetwork::flows(const std::vector<DevicePair>& pairs) const {
  FlowSet set;
  std::map<int, double> weights;
  for (const DevicePair& pair : pairs) {
    const Route& one = route(pair);
    if (one.missing) return *one.missing;
    for (const ResourceLoad& load : one.loads)
      weights[load.resource] += load.weight * one.inverse_efficiency * pair.share;
    set.latency = std::max(set.latency, one.latency);
  }
  for (const auto& [resource, weight] : weights)
    set.loads.push_back({resource, weight});
  return set;
}

void DeviceNetwork::add_traffic(const DevicePair& pair, double bytes,
                                std::vector<double>& bytes_on) const {
  for (const ResourceLoad& load : route(pair).loads)
    at(bytes_on, load.resource) += load.weight * bytes;
}

}  // namespace regatta::plan
