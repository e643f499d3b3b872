#include <algorithm>

#include "regatta/network/fabric/internal/packet/packet_engine.h"
#include "regatta/network/fabric/internal/packet/packet_network.h"

namespace regatta::fabric::packet {

// Loses a packet that came by `link`, which is dead or has no path behind it now. A connection that
// cannot use another path stops, since its later packets would be lost too.
void PacketEngine::lose_on(std::uint32_t link, const Packet& packet) {
  constexpr Picoseconds kTriesAnew =
      10;  // after an outage: packets may still be on paths before it
  const PacketNetwork::Link& of = network_.links[link];
  const bool is_of_nic = of.is_to_host || of.is_from_host;  // no intra-server link is ever dead
  const bool is_led = load_balancing_ == LoadBalancing::kHash || is_of_nic;
  const bool is_vain = is_led && packet.is_retransmit &&
                       clock_.now - outage_was_at_ > kTriesAnew * retransmit_after_;
  if (is_led) senders_.hold(packet.connection);
  if ((is_of_nic && cables_[link] == CableState::kRemoved) ||
      (is_vain && outages_past_ == outages_.size())) {
    lose_for_good(packet);
    return;
  }
  ++lost_on_links_;
  if (!is_vain) {
    lose(packet);
    return;
  }
  // Retransmissions before the next outage would fail too, so the packet is parked.
  if (steady_state_) steady_state_->lost_for_good(packet, clock_.now);
  parked_.push_back({keep(packet), clock_.flow_time()});
}

void PacketEngine::lose_for_good(const Packet& packet) {
  ++expired_;
  if (steady_state_) steady_state_->lost_for_good(packet, clock_.now);
}

// The next outage happens.
void PacketEngine::apply_outage() {
  const Outage& outage = outages_[outages_past_++];
  outage_was_at_ = clock_.now;
  const auto set = [&](LinkId link, CableState state) {
    for (const bool forward : {true, false})
      cables_[number_of({link, forward})] = state;
  };
  const auto comes_back = [&](LinkId link) {
    return std::any_of(
        outages_.begin() + static_cast<std::ptrdiff_t>(outages_past_), outages_.end(),
        [&](const Outage& later) { return std::ranges::count(later.back, link) != 0; });
  };
  for (const LinkId link : outage.back)
    set(link, CableState::kUp);
  for (const LinkId link : outage.dead)
    set(link, comes_back(link) ? CableState::kDown : CableState::kRemoved);
  for (const bool is_stuck : {true, false})
    for (const LinkId link : is_stuck ? outage.stuck : outage.freed)
      if (const std::uint32_t down = number_of({link, false});
          link_queues_.pauses().is_asked(down) != is_stuck)
        link_queues_.pauses().send_frame(down, clock_.now);
  if (outage.routes) take_routes(outage.routes());
  for (const Parked& one : parked_) {
    const Picoseconds tries = (clock_.flow_time() - one.lost_at) / retransmit_after_ + 1;
    set_timer(one.lost_at + tries * retransmit_after_ - clock_.skipped, TimerKind::kRetransmit,
              one.place);
    if (steady_state_) steady_state_->expect_retransmit();
  }
  parked_.clear();
  if (!steady_state_) return;
  steady_state_->changed(clock_.now);
  recurrence_detector_.changed();
  cycle_detector_.forget();
  flows_.log().clear();
  // Rates leave open whose packet goes next, so that others may be lost, and sent again a turn
  // sooner or later; what recurs does not.
  if (bound_ > 0 || fast_forwards_ != fast_forwards_by_recurrence_)
    bound_ += static_cast<double>(retransmit_after_);
}

void PacketEngine::poll() {
  storms_.poll(link_queues_, clock_.now, clock_.flow_time(), [this](std::uint32_t link) {
    return cables_.empty() || cables_[link] == CableState::kUp;
  });
}

// Nothing happens any more, so that what is paused stays so: until the watch must know.
void PacketEngine::poll_until_quiescent() {
  if (storms_.next_at() == kNever || flows_.not_arrived() == 0) return;
  const Picoseconds end = clock_.now + storms_.most();
  for (; clock_.now < end && !link_queues_.pauses().is_calm();) {
    clock_.now = std::max(clock_.now, storms_.next_at() - clock_.skipped);
    poll();
  }
}

void PacketEngine::take_routes(const Routes& routes) {
  routes_.emplace(routes);
  update_paths({setup_.graph, *routes_, setup_.seeds, setup_.pairs}, policy_, network_);
  load_balancer_.set_routes(*routes_);
}

}  // namespace regatta::fabric::packet
