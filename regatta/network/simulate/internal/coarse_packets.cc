#include "regatta/network/simulate/internal/coarse_packets.h"

#include <algorithm>
#include <cmath>

#include "regatta/network/fabric/traffic.h"

namespace regatta::simulate {
namespace {

constexpr double kLeastPerMessage = 4;     // so that a message is on several links at once
constexpr double kMostMessages = 1 << 21;  // about as many as max-min rates can do in the same time

struct Coarseness {
  double packets;      // at most, unless messages are many: about 1 us each to simulate
  double per_message;  // at most
  double bytes;        // of a packet, at most: several make up what switches hold
};
// The mean time over many seeds is that of packets for both; that of a single run of finer ones is
// nearer.
constexpr Coarseness kFine{1 << 18, 64, 16 << 10};
constexpr Coarseness kCoarse{1 << 19, 32, 32 << 10};

bool has_queues(const Scenario& scenario, const ScenarioWorkload& workload) {
  return workload.has_exchanges && scenario.routing.policy == RoutePolicy::kEcmp &&
         scenario.packet.is_lossless && !workload.network.graph.links.empty() &&
         workload.rings.empty() && workload.bundles.empty() &&
         std::ranges::all_of(scenario.failures,
                             [](const Failure& failure) { return failure.pausing_nic.empty(); });
}

// How long all takes at most: one message after the other, over the slowest link.
double latest_end(const ScenarioWorkload& workload) {
  double bytes = 0;
  double delays = 0;
  for (const fabric::FlowGraph::Flow& flow : workload.traffic.flows()) {
    bytes += flow.bytes;
    delays += flow.delay;
  }
  return bytes / std::ranges::min(workload.network.links.capacity) + delays;
}

double count_messages(const ScenarioWorkload& workload) {
  const auto count = std::ranges::count_if(workload.traffic.flows(),
                                           [](const auto& flow) { return flow.bytes > 0; });
  return workload.pairs.connections * static_cast<double>(count);
}

CoarsePacketPlan plan(const Coarseness& coarseness, const ScenarioWorkload& workload, double mtu) {
  const double messages = std::max(count_messages(workload), 1.0);
  const double per_message = std::clamp(std::floor(coarseness.packets / messages), kLeastPerMessage,
                                        coarseness.per_message);
  const double most = std::max(coarseness.bytes, mtu);
  const double connections = workload.pairs.connections;
  double packets = 0;
  for (const fabric::FlowGraph::Flow& flow : workload.traffic.flows()) {
    const double part = flow.bytes / connections;
    packets += connections * std::ceil(part / std::clamp(part / per_message, mtu, most));
  }
  const double scale =
      std::max(1.0, packets / std::max(coarseness.packets, kLeastPerMessage * messages));
  return {.per_message = static_cast<std::uint32_t>(per_message),
          .least = {std::max(1LL, static_cast<long long>(mtu / scale))},
          .most = {static_cast<long long>(most)},
          .scale = scale};
}

}  // namespace

std::optional<CoarsePacketPlan> plan_coarse_packets(const Scenario& scenario,
                                                    const ScenarioWorkload& workload) {
  if (!has_queues(scenario, workload) || latest_end(workload) > kLatestTime.value ||
      count_messages(workload) > kMostMessages)
    return std::nullopt;
  const auto mtu = static_cast<double>(scenario.packet.mtu.value);
  CoarsePacketPlan best = plan(kFine, workload, mtu);
  if (best.scale > 1) best = plan(kCoarse, workload, mtu);
  // Rate control counts bytes, too.
  if (best.scale > 1 && scenario.packet.has_dcqcn) return std::nullopt;
  return best;
}

}  // namespace regatta::simulate
