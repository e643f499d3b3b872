#include "regatta/network/fabric/internal/packet/engine.h"

#include <algorithm>
#include <utility>

#include "regatta/base/core/check.h"
#include "regatta/network/fabric/internal/packet/network.h"

namespace regatta::fabric::packet {
namespace {

constexpr std::uint8_t kMostHops = 64;  // as the time to live that Linux gives to packets

// Events lie at most about so far ahead while no link has to wait.
Picoseconds span_of(const Network& network, const PacketOptions& options) {
  Picoseconds span = 1;
  const auto bytes = static_cast<std::uint64_t>(options.mtu.value + options.header.value);
  for (const Network::Link& link : network.links)
    span = std::max(span, link.latency + 2 * link.time_of(bytes));
  return span;
}

}  // namespace

Engine::Engine(Network network, const PacketScene& scene, const Traffic& traffic,
               const PacketOptions& options)
    : network_(std::move(network)),
      scene_(scene),
      policy_(options.policy),
      spread_(options.spread),
      connections_(scene.pairs.connections),
      mtu_(static_cast<std::uint64_t>(options.mtu.value)),
      again_after_(picoseconds(options.send_again_after.value)),
      random_(options.seed),
      calendar_(network_.links.size() * kLineEvents, span_of(network_, options)),
      lines_(network_, options, calendar_, random_),
      senders_(network_, traffic.flows().size(), connections_, options),
      flows_(traffic),
      spreader_(network_, scene, options, lines_, random_),
      is_by_packet_(spreader_.is_by_packet()),
      orders_(network_.way_of.size()),
      wakes_(network_.links.size(), 0),
      outages_(options.outages),
      recorder_(options.history, options.queues),
      storms_(network_, options),
      rests_(network_.way_of.size(), 0) {
  if (!outages_.empty()) cables_.resize(network_.links.size(), Cable::kWell);
  flows_.set_listener(options.on_arrived);
  set_mark();
}

Result<MixedReport> Engine::run() {
  for (;;) {
    const Picoseconds timer = timers_.empty() ? kNever : timers_.top().at;
    const Picoseconds start_at = flows_.next_start();
    const Picoseconds look_at = steady_ ? steady_->look_at() : kNever;
    const Calendar::Event event = calendar_.pop(std::min({timer, start_at, look_at, mark_at_}));
    if (event.at != kNever) {
      now_ = event.at;
      happen(event);
    } else if (look_at < std::min({timer, start_at, mark_at_}) && !calendar_.empty()) {
      now_ = look_at;
      look();
    } else if (mark_at_ != kNever && mark_at_ <= std::min(timer, start_at) &&
               goes_on(std::min(timer, start_at))) {
      now_ = mark_at_;
      mark();
      continue;
    } else if (timer <= start_at && timer != kNever) {
      now_ = timer;
      if (is_resting_) wake();
      const Timer due = timers_.top();
      timers_.pop();
      happen(due);
    } else if (start_at != kNever) {
      now_ = start_at;
      if (is_resting_) wake();
      start(flows_.start());
    } else {
      break;
    }
    ++events_;
  }
  if (flows_.not_arrived() != 0)
    if (const auto waits_for = flows_.waits_without_end(); !waits_for.empty())
      return circle_of_waits(flows_.traffic(), waits_for);
  if (recorder_.is_on()) record();
  still_ = now_ + flows_.leapt();
  watch_what_stands();
  return report();
}

inline void Engine::happen(const Calendar::Event& event) {
  const std::uint32_t link = event.number / kLineEvents;
  switch (static_cast<LineEvent>(event.number % kLineEvents)) {
    case LineEvent::kArrival:
      arrive(link);
      break;
    case LineEvent::kFree:
      if (network_.links[link].is_from_host)
        packet_sent(link);
      else
        lines_.send_waiting(link, now_);
      break;
    case LineEvent::kWord:
      lines_.take_word(link, now_);
      if (network_.links[link].is_from_host) send_next(link);
      if (steady_) look_back(link);
      break;
  }
}

void Engine::happen(const Timer& timer) {
  switch (timer.what) {
    case What::kWake:
      send_next(timer.of);
      break;
    case What::kNotice:
      ++notices_;
      senders_.take_notice(timer.of, now_);
      break;
    case What::kAgain:
      senders_.send_again(lost_[timer.of]);
      free_.push_back(timer.of);
      send_next(senders_.first_link(lost_[timer.of].connection));
      break;
  }
}

void Engine::start(std::uint32_t flow) {
  const std::uint32_t first = flows_.pair(flow) * connections_;
  const std::uint64_t bytes = flows_.bytes(flow);
  if (network_.way_of[first] == kNone) {
    flows_.sent(flow, now_);
    flows_.arrived(flow, now_);
    return;
  }
  std::uint32_t parts = 0;
  std::uint64_t packets = 0;
  for (; parts < connections_; ++parts) {
    const std::uint64_t part = senders_.part(bytes, parts);
    if (part == 0 && parts != 0) break;  // an empty message is one empty packet
    packets += std::max<std::uint64_t>((part + mtu_ - 1) / mtu_, 1);
  }
  REGATTA_CHECK(packets < kNone);
  flows_.expect(flow, parts, static_cast<std::uint32_t>(packets));
  note_change();
  for (std::uint32_t i = 0; i < parts; ++i) {
    senders_.add(first + i, flow, bytes);
    send_next(senders_.first_link(first + i));
  }
  if (steady_) look_for_cycle(flow);
}

inline void Engine::note_change() {
  if (!steady_) return;
  steady_->changed(now_);
  recurrence_.changed();
}

// A NIC has.
inline void Engine::packet_sent(std::uint32_t link) {
  if (std::uint32_t& ending = senders_.ending(link); ending != kNone) {
    const std::uint32_t flow = ending;
    ending = kNone;
    flows_.part_sent(flow, now_);
    note_change();
  }
  senders_.is_busy(link) = false;
  send_next(link);
}

// From a NIC, if it can.
inline void Engine::send_next(std::uint32_t link) {
  if (senders_.is_busy(link) || lines_.is_paused(link)) return;
  if (const Picoseconds at = senders_.next_at(link, now_); at != now_) {
    // A wake that is set for later than this one is as good as none.
    if (at != kNever && (wakes_[link] <= now_ || wakes_[link] > at)) {
      wakes_[link] = at;
      set_timer(at, What::kWake, link);
    }
    return;
  }
  const auto next =
      senders_.next(link, now_, [this](std::uint32_t flow) { return flows_.bytes(flow); });
  if (next.is_last) senders_.ending(link) = next.packet.flow;
  senders_.is_busy(link) = true;
  if (steady_) steady_->sent(next.packet, now_);
  lines_.transmit(link, next.packet, now_);
  calendar_.push(Lines::number(link, LineEvent::kFree), lines_.free_at(link));
}

inline void Engine::arrive(std::uint32_t link) {
  Packet packet = lines_.take(link);
  if (!cables_.empty() && cables_[link] != Cable::kWell) {
    lines_.take_back(link, packet);
    lose_on(link, packet);
    return;
  }
  if (network_.links[link].is_to_host) {
    receive(packet);
    return;
  }
  const std::uint32_t next = next_link(link, packet);
  if (next == kNone && outages_past_ < outages_.size()) {
    lose_on(link, packet);
    return;
  }
  if (packet.hops++ == kMostHops || next == kNone) {
    lose_for_good(packet);
    return;
  }
  packet.from = link;
  if (lines_.queue(next, packet, now_)) return;
  ++lost_count_;
  lose(packet);
}

// Of a packet that came by `link`.
inline std::uint32_t Engine::next_link(std::uint32_t link, Packet& packet) {
  if (is_by_packet_) return spreader_.next(network_.links[link].end, packet, now_);
  std::uint32_t next = network_.ways[packet.next];
  if ((next & Network::kBack) != 0) {
    if (next == Network::kNowhere) return kNone;
    packet.next = next & ~Network::kBack;
    next = network_.ways[packet.next];
  }
  ++packet.next;
  return next;
}

inline void Engine::receive(const Packet& packet) {
  ++packets_;
  if (steady_) steady_->arrived(packet, now_);
  if (packet.is_again && senders_.release(packet.connection))
    send_next(senders_.first_link(packet.connection));
  Order& order = orders_[packet.connection];
  if (order.take(packet.sequence)) ++reordered_;
  most_held_ = std::max(most_held_, order.held());
  if (packet.is_marked)
    if (const auto at = senders_.notice_of(packet.connection, now_))
      set_timer(*at, What::kNotice, packet.connection);
  flows_.packet_arrived(packet.flow, now_);
}

void Engine::lose(const Packet& packet) {
  if (steady_) steady_->lost(packet, now_);
  set_timer(now_ + again_after_, What::kAgain, keep(packet));
}

// Until it is sent again: its place in lost_.
std::uint32_t Engine::keep(const Packet& packet) {
  if (free_.empty()) {
    free_.push_back(static_cast<std::uint32_t>(lost_.size()));
    lost_.emplace_back();
  }
  const std::uint32_t place = free_.back();
  free_.pop_back();
  lost_[place] = packet;
  return place;
}

// Whether anything happens at all from now on that matters to a flow; `next`: at what is due.
bool Engine::goes_on(Picoseconds next) const {
  if (next != kNever || !calendar_.empty()) return true;
  return next_outage() != kNever && flows_.not_arrived() != 0;
}

// What happens by the clock of the flows: an outage, or somebody writes down what has been.
void Engine::mark() {
  if (next_outage() <= now_) break_out();
  if (now_ + flows_.leapt() >= recorder_.next_at()) {
    record();
    is_resting_ = calendar_.empty();
  }
  if (now_ + flows_.leapt() >= storms_.next_at()) poll();
  set_mark();
}

void Engine::set_mark() {
  mark_at_ = next_outage();
  if (const Picoseconds at = recorder_.next_at(); at != kNever && !is_resting_)
    mark_at_ = std::min(mark_at_, std::max(now_, at - flows_.leapt()));
  if (const Picoseconds at = storms_.next_at(); at != kNever)
    mark_at_ = std::min(mark_at_, std::max(now_, at - flows_.leapt()));
}

void Engine::record() {
  recorder_.look(lines_, now_, now_ + flows_.leapt());
}

// Something happens again after nothing did.
void Engine::wake() {
  is_resting_ = false;
  record();
  set_mark();
}

// So much time is over at once.
void Engine::pass(Picoseconds time) {
  flows_.leap(time);
  set_mark();
  if (recorder_.is_on()) record();
}

void Engine::set_timer(Picoseconds at, What what, std::uint32_t of) {
  timers_.push({at, order_++, what, of});
}

MixedReport Engine::report() const {
  MixedReport report;
  for (std::uint32_t flow = 0; flow < flows_.traffic().flows().size(); ++flow)
    report.flows.push_back(flows_.times(flow));
  lines_.report(report, now_);
  report.end = {seconds(flows_.end())};
  report.packets = packets_;
  report.crossings = lines_.crossings();
  report.events = events_;
  report.notices = notices_;
  report.lost = lost_count_;
  report.lost_on_links = lost_on_links_;
  report.expired = expired_;
  report.bound = {bound_ * 1e-12};
  report.leapt = {seconds(flows_.leapt())};
  report.leaps = leaps_;
  report.leaps_by_max_min = leaps_by_max_min_;
  report.leaps_by_recurrence = leaps_back_;
  report.cycles = cycles_repeated_;
  report.reordered = reordered_;
  report.most_held_back = most_held_;
  report.still = {seconds(still_)};
  report.storms = storms_.storms(lines_);
  report.not_arrived = flows_.not_arrived();
  if (report.not_arrived != 0) report.deadlock = lines_.find_waits();
  return report;
}

}  // namespace regatta::fabric::packet
