#include "regatta/network/fabric/internal/packet/packet_engine.h"
#include "regatta/network/fabric/internal/packet/packet_network.h"

namespace regatta::fabric::packet {

// Loses a packet that came by `link`, which is dead or has no path behind it now. A connection that
// cannot use another path stops, since its later packets would be lost too.
void PacketEngine::lose_on(std::uint32_t link, const Packet& packet) {
  constexpr Picoseconds kTriesAnew =
      10;  // after an outage: packets may still be on paths before it
  const PacketNetwork::Link& of = state_.network.links[link];
  const bool is_of_nic = of.is_to_host || of.is_from_host;  // no intra-server link is ever dead
  const bool is_led = load_balancing_ == LoadBalancing::kHash || is_of_nic;
  const bool is_vain = is_led && packet.is_retransmit &&
                       state_.clock.now - state_.outages.last_at() > kTriesAnew * retransmit_after_;
  if (is_led) state_.senders.hold(packet.connection);
  if ((is_of_nic && state_.outages.is_removed(link)) || (is_vain && state_.outages.is_over())) {
    lose_for_good(packet);
    return;
  }
  ++lost_on_links_;
  if (!is_vain) {
    lose(packet);
    return;
  }
  // Retransmissions before the next outage would fail too, so the packet is parked.
  if (fast_forwarder_) fast_forwarder_->lost_for_good(packet);
  lost_.park(packet, state_.clock.flow_time());
}

void PacketEngine::lose_for_good(const Packet& packet) {
  ++expired_;
  if (fast_forwarder_) fast_forwarder_->lost_for_good(packet);
}

// The next outage happens.
void PacketEngine::apply_outage() {
  const Outage& outage = state_.outages.apply(state_.clock.now);
  for (const bool is_stuck : {true, false})
    for (const LinkId link : is_stuck ? outage.stuck : outage.freed)
      if (const std::uint32_t down = number_of({link, false});
          state_.link_queues.pauses().is_asked(down) != is_stuck)
        state_.link_queues.pauses().send_frame(down, state_.clock.now);
  if (outage.routes) set_routes(outage.routes());
  lost_.unpark([&](std::uint32_t place, Picoseconds lost_at) {
    const Picoseconds tries = (state_.clock.flow_time() - lost_at) / retransmit_after_ + 1;
    state_.timers.push(lost_at + tries * retransmit_after_ - state_.clock.skipped,
                       TimerKind::kRetransmit, place);
    if (fast_forwarder_) fast_forwarder_->expect_retransmit();
  });
  if (fast_forwarder_) fast_forwarder_->outage_happened();
}

void PacketEngine::set_routes(const Routes& routes) {
  routes_.emplace(routes);
  update_paths({setup_.graph, *routes_, setup_.seeds, setup_.pairs}, policy_, state_.network);
  load_balancer_.set_routes(*routes_);
}

}  // namespace regatta::fabric::packet
