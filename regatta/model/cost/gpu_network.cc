#include "regatta/model/cost/gpu_network.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <numeric>
#include <vector>

#include "regatta/model/cost/collective.h"

namespace regatta::cost {
namespace {

// A sum that switches form moves a rank's bytes once each way where a ring moves them nearly twice,
// at this share of the ring's rate: 275 of 370 GB/s between eight H100 (NVIDIA/nccl-tests, issue
// 212).
constexpr double kSwitchSum = 275.0 / 370;

Seconds all_reduce_inside_time(const ServerNetwork& server, int ranks, double bytes,
                               bool in_network) {
  const Seconds once{bytes / server.link.value};
  const Seconds at_once = server.switch_latency + once * (ranks - 1.0);
  const Seconds halves = server.switch_latency * 2.0 + once * (2 * pass_share(ranks));
  Seconds least = std::min(at_once, halves);
  if (in_network) least = std::min(least, server.switch_latency * 2.0 + once / kSwitchSum);
  return server.latency + least;
}

Seconds hierarchical_time(const ServerNetwork& server, int ranks, double bytes, bool in_network) {
  if (ranks <= 1) return {};
  const int inside = ranks_inside(server, ranks, 1);
  Seconds time;
  if (inside > 1) time = all_reduce_inside_time(server, inside, bytes, in_network);
  if (ranks == inside) return time;
  // As many groups as a server holds share its network.
  const double groups = static_cast<double>(server.devices) / inside;
  const double parts = static_cast<double>(ranks) / inside;
  return time + server.network_latency() +
         Seconds{2 * bytes * pass_share(parts) * groups / server.network(ranks).value};
}

}  // namespace

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
  const topo::ScaleUp& domain = server.scale_up;
  const bool is_joined = domain.servers > 1;
  const BytesPerSecond link = is_joined ? domain.bandwidth : server.intra.bandwidth;
  return {.devices = server.device_count,
          .servers_most = domain.servers,
          .switch_latency = is_joined ? domain.latency : Seconds{},
          .in_network_reduction = domain.in_network_reduction,
          .link = link * calibration.link_efficiency,
          .latency = std::max(calibration.collective_latency, server.intra.latency),
          .reach = {all, all, all}};
}

topo::DomainParts job_parts(const topo::ScaleUp& domain, int servers, int domains_most) {
  const int most = std::max(1, std::min(domain.servers, servers));
  int equal = most;
  while (servers % equal != 0)
    --equal;
  if (2 * equal >= most && servers / equal <= domains_most)
    return {.domains = servers / equal, .servers = equal, .last = equal};
  return topo::domain_parts(domain, servers);
}

ServerNetwork network_of_job(ServerNetwork network, int servers) {
  const topo::DomainParts parts =
      job_parts({.servers = network.servers_most}, servers, network.domains_most);
  const double growth = static_cast<double>(parts.last) / network.servers;
  const int of_server = network.devices / network.servers;
  network.devices = of_server * parts.last;
  network.servers = parts.last;
  network.domains = parts.domains;
  network.more_devices = of_server * (parts.servers - parts.last);
  for (ScopeBandwidth& part : network.reach)
    part.rate = part.rate * growth;
  return network;
}

ServerNetwork cluster_network(const topo::Cluster& cluster, const SoftwareStack& stack) {
  const topo::ServerType& type = cluster.type_of(ServerId{0});
  ServerNetwork network = server_network(type, stack);
  const std::vector<int> domains = topo::scale_up_domains(cluster);
  if (!domains.empty()) network.domains_most = domains.back() + 1;
  const topo::Fabric& fabric = cluster.fabric;
  network.path = fabric.hop_latency * (2 * fabric.tiers);  // up to the highest switches and down
  const int servers = static_cast<int>(cluster.servers.size());
  if (fabric.tiers < 2) return network_of_job(network, servers);
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
  if (fabric.tiers < 3 || fabric.leaves_per_group == 0) return network_of_job(network, servers);
  // Leaves of all rails count; the spines of a group have uplinks to all super-spines of the fabric
  // together.
  const double group = leaf * fabric.leaves_per_group / fabric.rails;
  network.reach[1].devices = static_cast<int>(group) * type.device_count;
  network.reach[2].rate =
      narrowed(network.reach[1].rate, fabric.super_uplink * (uplinks_of_group(fabric) / group));
  return network_of_job(network, servers);
}

namespace {

// The smallest part of a group of `extent` devices that begins in one domain and ends in another,
// where the last domain has fewer devices; `extent` where no group does.
int smallest_part(const ServerNetwork& network, int extent) {
  const int each = network.devices + network.more_devices;
  int least = extent;
  for (int i = 1; i < network.domains; ++i) {
    const int before = i * each % extent;
    if (before == 0) continue;
    const int next = i + 1 < network.domains ? each : network.devices;
    least = std::min({least, before, each, extent - before, next});
  }
  return least;
}

}  // namespace

int ranks_inside(const ServerNetwork& server, int ranks, int stride) {
  const int extent = ranks * stride;
  const int part =
      server.more_devices == 0 ? std::gcd(extent, server.devices) : smallest_part(server, extent);
  return std::max(1, part / stride);
}

Seconds collective_time(const ServerNetwork& server, const RankGroup& group, Collective collective,
                        double bytes) {
  if (group.ranks <= 1) return {};
  const double passes = collective == Collective::kAllReduce ? 2 : 1;
  const double sent = passes * bytes * pass_share(group.ranks);
  if (group.ranks <= group.inside) {
    if (collective == Collective::kAllReduce)
      return all_reduce_inside_time(server, group.ranks, bytes, server.in_network_reduction);
    return server.latency + server.switch_latency + Seconds{sent / server.link.value};
  }
  const double rate = std::min(server.link.value, server.network(group.extent).value / group.rings);
  return server.network_latency() * std::log2(group.ranks) + Seconds{sent / rate};
}

Seconds hierarchical_all_reduce_time(const ServerNetwork& server, int ranks, double bytes) {
  return hierarchical_time(server, ranks, bytes, server.in_network_reduction);
}

Seconds hierarchical_scatter_and_gather_time(const ServerNetwork& server, int ranks, double bytes) {
  return hierarchical_time(server, ranks, bytes, false);
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
  const double inside = ranks_inside(server, dispatch.ranks, dispatch.stride);
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
