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

Seconds message_time(const ServerNetwork& server, bool is_inside, double bytes) {
  const double rate =
      is_inside ? server.link.value : server.network.value / std::max(1, server.devices);
  return server.latency + Seconds{bytes / rate};
}

}  // namespace regatta::cost
