#include "regatta/model/cost/gpu_network.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>

#include "regatta/model/cost/collective.h"

namespace regatta::cost {

BytesPerSecond ServerNetwork::network(int extent) const {
  for (const ScopeBandwidth& part : reach)
    if (extent <= part.devices) return part.rate;
  return reach.back().rate;
}

BytesPerSecond ServerNetwork::chain(int stride, int extent) const {
  BytesPerSecond slowest = reach.front().rate;
  for (std::size_t i = 1; i < reach.size() && extent > reach[i - 1].devices; ++i) {
    const double stages = static_cast<double>(reach[i - 1].devices) / stride;
    slowest = std::min(slowest, reach[i].rate * std::max(1.0, stages / 2));
  }
  return slowest;
}

double straggler_factor(double servers) {
  // Sinha et al., "Not All GPUs Are Created Equal", SC'22, see more between single devices; eight
  // of them, and the sum of many operations, even it out.
  constexpr double kSpread = 0.01;
  return servers > 1 ? 1 + kSpread * std::sqrt(2 * std::log(servers)) : 1;
}

ServerNetwork server_network(const topo::ServerType& server, const SoftwareStack& stack) {
  const Calibration& calibration = stack.calibration;
  const ScopeBandwidth all{
      .devices = std::numeric_limits<int>::max(),
      .rate = server.nic_rate * server.nic_count * calibration.network_efficiency};
  return {.devices = server.device_count,
          .link = server.intra.bandwidth * calibration.link_efficiency,
          .latency = std::max(calibration.collective_latency, server.intra.latency),
          .reach = {all, all, all}};
}

ServerNetwork cluster_network(const topo::Cluster& cluster, const SoftwareStack& stack) {
  const topo::ServerType& type = cluster.type_of(ServerId{0});
  ServerNetwork network = server_network(type, stack);
  const topo::Fabric& fabric = cluster.fabric;
  network.path = fabric.hop_latency * (2 * fabric.tiers);  // up to the highest switches and down
  if (fabric.tiers < 2) return network;
  const double efficiency = stack.calibration.network_efficiency;
  // A leaf of each rail serves the servers of a leaf; they share its uplinks.
  const double leaf = fabric.servers_per_leaf;
  const auto narrowed = [&](BytesPerSecond rate, BytesPerSecond links) {
    return std::min(rate, links * efficiency);
  };
  network.reach[0].devices = fabric.servers_per_leaf * type.device_count;
  network.reach[1].rate = narrowed(network.reach[0].rate,
                                   fabric.uplink * (fabric.rails * uplinks_of_leaf(fabric) / leaf));
  network.reach[2].rate = network.reach[1].rate;
  if (fabric.tiers < 3 || fabric.leaves_per_group == 0) return network;
  // Leaves of all rails count; the spines of a group have uplinks to all super-spines of the fabric
  // together.
  const double group = leaf * fabric.leaves_per_group / fabric.rails;
  network.reach[1].devices = static_cast<int>(group) * type.device_count;
  network.reach[2].rate =
      narrowed(network.reach[1].rate, fabric.super_uplink * (uplinks_of_group(fabric) / group));
  return network;
}

Seconds collective_time(const ServerNetwork& server, const RankGroup& group, Collective collective,
                        double bytes) {
  if (group.ranks <= 1) return {};
  const double passes = collective == Collective::kAllReduce ? 2 : 1;
  const double sent = passes * bytes * pass_share(group.ranks);
  if (group.ranks <= group.inside) return server.latency + Seconds{sent / server.link.value};
  const double rate = std::min(server.link.value, server.network(group.extent).value / group.rings);
  return server.network_latency() * std::log2(group.ranks) + Seconds{sent / rate};
}

Seconds hierarchical_all_reduce_time(const ServerNetwork& server, int ranks, double bytes) {
  const int inside = std::min(ranks, server.devices);
  Seconds time =
      collective_time(server, {.ranks = inside, .inside = inside}, Collective::kAllReduce, bytes);
  if (ranks == inside) return time;
  const double servers = static_cast<double>(ranks) / inside;
  time += server.network_latency() +
          Seconds{2 * bytes * pass_share(servers) / server.network(ranks).value};
  return time;
}

namespace {

// The number of `places` that `copies` reach in the mean, when each goes to one by chance.
double reached_places(double places, double copies) {
  return places * (1 - std::pow(1 - 1 / places, copies));
}

}  // namespace

double copies_to_other_servers(double servers, double copies, double reach) {
  return reached_places(std::max(1.0, servers * reach), copies) * pass_share(servers);
}

Seconds dispatch_time(const ServerNetwork& server, const TokenDispatch& dispatch, double bytes) {
  if (dispatch.ranks <= 1) return {};
  const double inside = std::max(
      1.0, std::min<double>(dispatch.ranks,
                            std::floor(static_cast<double>(server.devices) / dispatch.stride)));
  const double servers = dispatch.ranks / inside;
  const double outside = bytes * copies_to_other_servers(servers, dispatch.copies, dispatch.reach);
  const double places = std::max(1.0, dispatch.ranks * dispatch.reach);
  const double copies =
      dispatch.is_once_a_rank ? reached_places(places, dispatch.copies) : dispatch.copies;
  const double within = bytes * copies * pass_share(inside);
  const double nic = server.network(dispatch.ranks * dispatch.stride).value / server.devices;
  return (outside > 0 ? server.network_latency() : server.latency) +
         Seconds{std::max(outside / nic, within / server.link.value)};
}

Seconds all_to_all_time(const ServerNetwork& server, const RankGroup& group, double bytes) {
  if (group.ranks <= 1) return {};
  const double ranks = group.ranks;
  const double inside = std::min(group.ranks, group.inside);
  const double nic = server.network(group.extent).value / server.devices;
  return (ranks > inside ? server.network_latency() : server.latency) +
         Seconds{std::max(bytes * (inside - 1) / ranks / server.link.value,
                          bytes * (ranks - inside) / ranks / nic)};
}

Seconds ring_step_time(const ServerNetwork& server, const RankGroup& group, double bytes) {
  if (group.ranks <= group.inside) return Seconds{bytes / server.link.value};
  // One rank of each server sends out of it, in every ring.
  return server.network_latency() +
         Seconds{bytes /
                 std::min(server.link.value, server.network(group.extent).value / group.rings)};
}

Seconds message_time(const ServerNetwork& server, int stride, int stages, double bytes) {
  const int extent = stride * stages;
  if (extent <= server.devices) return server.latency + Seconds{bytes / server.link.value};
  return server.network_latency() +
         Seconds{bytes * std::max(1, server.devices) / server.chain(stride, extent).value};
}

}  // namespace regatta::cost
