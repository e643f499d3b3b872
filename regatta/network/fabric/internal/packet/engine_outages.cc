#include <algorithm>

#include "regatta/network/fabric/internal/packet/engine.h"
#include "regatta/network/fabric/internal/packet/network.h"

namespace regatta::fabric::packet {

// A packet that came by `link`, which is dead, or from which no way leads on today. Who cannot send
// another way stops, for all that follows is lost too.
void Engine::lose_on(std::uint32_t link, const Packet& packet) {
  constexpr Picoseconds kTriesAnew = 10;  // after an outage: packets may still be on ways before it
  const Network::Link& of = network_.links[link];
  const bool is_of_nic = of.is_to_host || of.is_from_host;  // no pipe is ever dead
  const bool is_led = spread_ == Spread::kHash || is_of_nic;
  const bool is_vain =
      is_led && packet.is_again && now_ - outage_was_at_ > kTriesAnew * again_after_;
  if (is_led) senders_.hold(packet.connection);
  if ((is_of_nic && cables_[link] == Cable::kGone) ||
      (is_vain && outages_past_ == outages_.size())) {
    lose_for_good(packet);
    return;
  }
  ++lost_on_links_;
  if (!is_vain) {
    lose(packet);
    return;
  }
  // All tries before the next outage would be in vain too, so that none is made.
  if (steady_) steady_->lost_for_good(packet, now_);
  parked_.push_back({keep(packet), now_ + flows_.leapt()});
}

void Engine::lose_for_good(const Packet& packet) {
  ++expired_;
  if (steady_) steady_->lost_for_good(packet, now_);
}

// The next outage happens.
void Engine::break_out() {
  const Outage& outage = outages_[outages_past_++];
  outage_was_at_ = now_;
  const auto set = [&](LinkId link, Cable state) {
    for (const bool forward : {true, false})
      cables_[number_of({link, forward})] = state;
  };
  const auto comes_back = [&](LinkId link) {
    return std::any_of(
        outages_.begin() + static_cast<std::ptrdiff_t>(outages_past_), outages_.end(),
        [&](const Outage& later) { return std::ranges::count(later.back, link) != 0; });
  };
  for (const LinkId link : outage.back)
    set(link, Cable::kWell);
  for (const LinkId link : outage.dead)
    set(link, comes_back(link) ? Cable::kDead : Cable::kGone);
  for (const bool is_stuck : {true, false})
    for (const LinkId link : is_stuck ? outage.stuck : outage.freed)
      if (const std::uint32_t down = number_of({link, false}); lines_.is_asked(down) != is_stuck)
        lines_.ask_by_nic(down, now_);
  if (outage.routes) take_routes(outage.routes());
  for (const Parked& one : parked_) {
    const Picoseconds tries = (now_ + flows_.leapt() - one.lost_at) / again_after_ + 1;
    set_timer(one.lost_at + tries * again_after_ - flows_.leapt(), What::kAgain, one.place);
    if (steady_) steady_->is_sent_again();
  }
  parked_.clear();
  if (!steady_) return;
  steady_->changed(now_);
  recurrence_.changed();
  cycles_.forget();
  flows_.forget_notes();
  // Rates leave open whose packet goes next, so that others may be lost, and sent again a turn
  // sooner or later; what recurs does not.
  if (bound_ > 0 || leaps_ != leaps_back_) bound_ += static_cast<double>(again_after_);
}

void Engine::poll() {
  storms_.poll(lines_, now_, now_ + flows_.leapt(), [this](std::uint32_t link) {
    return cables_.empty() || cables_[link] == Cable::kWell;
  });
}

// Nothing happens any more, so that what is paused stays so: until the watch must know.
void Engine::watch_what_stands() {
  if (storms_.next_at() == kNever || flows_.not_arrived() == 0) return;
  const Picoseconds end = now_ + storms_.most();
  for (; now_ < end && !lines_.is_calm();) {
    now_ = std::max(now_, storms_.next_at() - flows_.leapt());
    poll();
  }
}

void Engine::take_routes(const Routes& routes) {
  routes_.emplace(routes);
  lead_again({scene_.graph, *routes_, scene_.seeds, scene_.pairs}, policy_, network_);
  spreader_.set_routes(*routes_);
}

}  // namespace regatta::fabric::packet
