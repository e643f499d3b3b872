#include "regatta/cost/gpu_network.h"

#include <algorithm>
#include <cmath>

namespace regatta::cost {

ServerNetwork server_network(const topo::ServerType& server, const Stack& stack) {
  const Calibration& calibration = stack.calibration;
  return {.devices = server.device_count,
          .link = server.intra.bandwidth * calibration.link_efficiency,
          .network = server.nic_rate * server.nic_count * calibration.network_efficiency,
          .latency = calibration.collective_latency};
}

Seconds collective_time(const ServerNetwork& server, const RankGroup& group, Collective collective,
                        double bytes) {
  if (group.ranks <= 1) return {};
  const double passes = collective == Collective::kAllReduce ? 2 : 1;
  const double sent = passes * bytes * (group.ranks - 1) / group.ranks;
  if (group.ranks <= group.inside) return server.latency + Seconds{sent / server.link.value};
  const double rate = std::min(server.link.value, server.network.value / group.rings);
  return server.latency * std::log2(group.ranks) + Seconds{sent / rate};
}

Seconds hierarchical_all_reduce_time(const ServerNetwork& server, int ranks, double bytes) {
  const int inside = std::min(ranks, server.devices);
  Seconds time =
      collective_time(server, {.ranks = inside, .inside = inside}, Collective::kAllReduce, bytes);
  if (ranks == inside) return time;
  const double servers = static_cast<double>(ranks) / inside;
  time += server.latency + Seconds{2 * bytes * (servers - 1) / servers / server.network.value};
  return time;
}

Seconds dispatch_time(const ServerNetwork& server, const Dispatch& dispatch, double bytes) {
  if (dispatch.ranks <= 1) return {};
  const double inside =
      std::max(1.0, std::min<double>(dispatch.ranks, server.devices / dispatch.stride));
  const double servers = dispatch.ranks / inside;
  // Of the copies of a token, the servers other than its own that get one.
  const double reached = servers * (1 - std::pow(1 - 1 / servers, dispatch.copies));
  const double outside = bytes * reached * (servers - 1) / servers;
  const double within = bytes * dispatch.copies * (inside - 1) / inside;
  const double nic = server.network.value / server.devices;
  return server.latency + Seconds{std::max(outside / nic, within / server.link.value)};
}

Seconds all_to_all_time(const ServerNetwork& server, const RankGroup& group, double bytes) {
  if (group.ranks <= 1) return {};
  const double ranks = group.ranks;
  const double inside = std::min(group.ranks, group.inside);
  const double nic = server.network.value / server.devices;
  return server.latency + Seconds{std::max(bytes * (inside - 1) / ranks / server.link.value,
                                           bytes * (ranks - inside) / ranks / nic)};
}

Seconds ring_step_time(const ServerNetwork& server, const RankGroup& group, double bytes) {
  if (group.ranks <= group.inside) return Seconds{bytes / server.link.value};
  // One rank of each server sends out of it, in every ring.
  return server.latency +
         Seconds{bytes / std::min(server.link.value, server.network.value / group.rings)};
}

Seconds message_time(const ServerNetwork& server, bool is_inside, double bytes) {
  const double rate =
      is_inside ? server.link.value : server.network.value / std::max(1, server.devices);
  return server.latency + Seconds{bytes / rate};
}

}  // namespace regatta::cost
