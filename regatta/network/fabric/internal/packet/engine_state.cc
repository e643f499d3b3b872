#include "regatta/network/fabric/internal/packet/engine_state.h"

#include <utility>

namespace regatta::fabric::packet {
namespace {

// Events lie at most about so far ahead while no link has to wait.
Picoseconds span_of(const PacketNetwork& network, const PacketOptions& options) {
  Picoseconds span = 1;
  const auto bytes = static_cast<std::uint64_t>(options.mtu.value + options.header.value);
  for (const PacketNetwork::Link& link : network.links)
    span = std::max(span, link.latency + 2 * link.time_of(bytes));
  return span;
}

}  // namespace

EngineState::EngineState(PacketNetwork of, const PacketSetup& setup, const FlowGraph& traffic,
                         const PacketOptions& options)
    : network(std::move(of)),
      random(options.seed),
      calendar(network.links.size() * kLinkEvents, span_of(network, options)),
      link_queues(network, options, calendar, random),
      senders(network, traffic.flows().size(), setup.pairs.connections, options),
      flows(traffic),
      timers(network.links.size()),
      outages(options.outages, network.links.size()),
      observers(network, options, link_queues, outages, clock) {
  flows.set_listener(options.on_arrived);
  schedule_control();
}

}  // namespace regatta::fabric::packet
