#include "regatta/network/fabric/internal/packet/packet_engine.h"

#include <algorithm>
#include <utility>

#include "regatta/base/core/result.h"
#include "regatta/network/fabric/internal/packet/packet_network.h"
#include "regatta/network/fabric/internal/packet/pause_dependencies.h"

namespace regatta::fabric::packet {
namespace {

constexpr std::uint64_t kEventsPerStopCheck = 4096;
constexpr std::uint8_t kMostHops = 64;  // as the time to live that Linux gives to packets

// Events lie at most about so far ahead while no link has to wait.
Picoseconds span_of(const PacketNetwork& network, const PacketOptions& options) {
  Picoseconds span = 1;
  const auto bytes = static_cast<std::uint64_t>(options.mtu.value + options.header.value);
  for (const PacketNetwork::Link& link : network.links)
    span = std::max(span, link.latency + 2 * link.time_of(bytes));
  return span;
}

}  // namespace

PacketEngine::PacketEngine(PacketNetwork network, const PacketSetup& setup,
                           const FlowGraph& traffic, const PacketOptions& options)
    : network_(std::move(network)),
      setup_(setup),
      policy_(options.policy),
      load_balancing_(options.load_balancing),
      connections_(setup.pairs.connections),
      mtu_(static_cast<std::uint64_t>(options.mtu.value)),
      retransmit_after_(picoseconds(options.retransmit_after.value)),
      stop_(options.stop),
      random_(options.seed),
      calendar_(network_.links.size() * kLinkEvents, span_of(network_, options)),
      link_queues_(network_, options, calendar_, random_),
      senders_(network_, traffic.flows().size(), connections_, options),
      flows_(traffic),
      load_balancer_(network_, setup, options, link_queues_, random_),
      is_by_packet_(load_balancer_.is_by_packet()),
      reorder_buffers_(network_.path_of.size()),
      wakes_(network_.links.size(), 0),
      outages_(options.outages),
      recorder_(options.history, options.queues),
      storms_(network_, options),
      rests_(network_.path_of.size(), 0) {
  if (!outages_.empty()) cables_.resize(network_.links.size(), CableState::kUp);
  flows_.set_listener(options.on_arrived);
  schedule_control();
}

Result<MixedReport> PacketEngine::run() {
  for (;;) {
    if (events_ % kEventsPerStopCheck == 0 && is_stopped()) break;
    const Picoseconds timer = timers_.empty() ? kNever : timers_.top().at;
    const Picoseconds start_at = flows_.next_start(clock_);
    const Picoseconds look_at = steady_state_ ? steady_state_->look_at() : kNever;
    const CalendarQueue::Event event =
        calendar_.pop(std::min({timer, start_at, look_at, next_control_at_}));
    if (event.at != kNever) {
      clock_.now = event.at;
      handle(event);
    } else if (look_at < std::min({timer, start_at, next_control_at_}) && !calendar_.empty()) {
      clock_.now = look_at;
      look();
    } else if (next_control_at_ != kNever && next_control_at_ <= std::min(timer, start_at) &&
               goes_on(std::min(timer, start_at))) {
      clock_.now = next_control_at_;
      run_control();
      continue;
    } else if (timer <= start_at && timer != kNever) {
      clock_.now = timer;
      if (is_resting_) wake();
      const Timer due = timers_.top();
      timers_.pop();
      handle(due);
    } else if (start_at != kNever) {
      clock_.now = start_at;
      if (is_resting_) wake();
      start(flows_.start());
    } else {
      break;
    }
    ++events_;
  }
  if (flows_.not_arrived() != 0 && !is_stopped())
    if (const auto unmet = unmet_dependencies(flows_.traffic()); !unmet.empty())
      return dependency_cycle_error(flows_.traffic(), unmet);
  if (recorder_.is_on()) record();
  quiescent_at_ = clock_.flow_time();
  if (!is_stopped()) poll_until_quiescent();
  return report();
}

inline void PacketEngine::handle(const CalendarQueue::Event& event) {
  const std::uint32_t link = event.number / kLinkEvents;
  switch (static_cast<LinkEvent>(event.number % kLinkEvents)) {
    case LinkEvent::kArrival:
      arrive(link);
      break;
    case LinkEvent::kFree:
      if (network_.links[link].is_from_host)
        packet_sent(link);
      else
        link_queues_.send_waiting(link, clock_.now);
      break;
    case LinkEvent::kPauseFrame:
      link_queues_.receive_pause_frame(link, clock_.now);
      if (network_.links[link].is_from_host) send_next(link);
      if (steady_state_) check_recurrence(link);
      break;
  }
}

void PacketEngine::handle(const Timer& timer) {
  switch (timer.what) {
    case TimerKind::kWake:
      send_next(timer.of);
      break;
    case TimerKind::kCnp:
      ++cnps_;
      senders_.receive_cnp(timer.of, clock_.now);
      break;
    case TimerKind::kRetransmit:
      senders_.retransmit(lost_[timer.of]);
      free_.push_back(timer.of);
      send_next(senders_.first_link(lost_[timer.of].connection));
      break;
  }
}

void PacketEngine::start(std::uint32_t flow) {
  const std::uint32_t first = flows_.pair(flow) * connections_;
  const std::uint64_t bytes = flows_.bytes(flow);
  if (network_.path_of[first] == kNone) {
    flows_.sent(flow, clock_);
    flows_.arrived(flow, clock_);
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
  if (steady_state_) check_cycle(flow);
}

inline void PacketEngine::note_change() {
  if (!steady_state_) return;
  steady_state_->changed(clock_.now);
  recurrence_detector_.changed();
}

// A NIC has.
inline void PacketEngine::packet_sent(std::uint32_t link) {
  if (std::uint32_t& ending = senders_.ending(link); ending != kNone) {
    const std::uint32_t flow = ending;
    ending = kNone;
    flows_.part_sent(flow, clock_);
    note_change();
  }
  senders_.is_busy(link) = false;
  send_next(link);
}

// From a NIC, if it can.
inline void PacketEngine::send_next(std::uint32_t link) {
  if (senders_.is_busy(link) || link_queues_.pauses().is_paused(link)) return;
  if (const Picoseconds at = senders_.next_at(link, clock_.now); at != clock_.now) {
    // A wake that is set for later than this one is as good as none.
    if (at != kNever && (wakes_[link] <= clock_.now || wakes_[link] > at)) {
      wakes_[link] = at;
      set_timer(at, TimerKind::kWake, link);
    }
    return;
  }
  const auto next =
      senders_.next(link, clock_.now, [this](std::uint32_t flow) { return flows_.bytes(flow); });
  if (next.is_last) senders_.ending(link) = next.packet.flow;
  senders_.is_busy(link) = true;
  if (steady_state_) steady_state_->sent(next.packet, clock_.now);
  link_queues_.transmit(link, next.packet, clock_.now);
  calendar_.push(event_number(link, LinkEvent::kFree), link_queues_.free_at(link));
}

inline void PacketEngine::arrive(std::uint32_t link) {
  Packet packet = link_queues_.take(link);
  if (!cables_.empty() && cables_[link] != CableState::kUp) {
    link_queues_.cancel_transmit(link, packet);
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
  if (link_queues_.enqueue(next, packet, clock_.now)) return;
  ++lost_count_;
  lose(packet);
}

// The link that a packet takes after `link`; kNone at the end of its path.
inline std::uint32_t PacketEngine::next_link(std::uint32_t link, Packet& packet) {
  if (is_by_packet_) return load_balancer_.next(network_.links[link].end, packet, clock_.now);
  std::uint32_t next = network_.paths[packet.next];
  if ((next & PacketNetwork::kLoopsBack) != 0) {
    if (next == PacketNetwork::kPathEnds) return kNone;
    packet.next = next & ~PacketNetwork::kLoopsBack;
    next = network_.paths[packet.next];
  }
  ++packet.next;
  return next;
}

inline void PacketEngine::receive(const Packet& packet) {
  ++packets_;
  if (steady_state_) steady_state_->arrived(packet, clock_.now);
  if (packet.is_retransmit && senders_.release(packet.connection))
    send_next(senders_.first_link(packet.connection));
  ReorderBuffer& buffer = reorder_buffers_[packet.connection];
  if (buffer.take(packet.sequence)) ++reordered_;
  reorder_buffer_peak_ = std::max(reorder_buffer_peak_, buffer.held());
  if (packet.is_marked)
    if (const auto at = senders_.cnp_of(packet.connection, clock_.now))
      set_timer(*at, TimerKind::kCnp, packet.connection);
  flows_.packet_arrived(packet.flow, clock_);
}

void PacketEngine::lose(const Packet& packet) {
  if (steady_state_) steady_state_->lost(packet, clock_.now);
  set_timer(clock_.now + retransmit_after_, TimerKind::kRetransmit, keep(packet));
}

// Keeps the packet until it is sent again; returns its place in lost_.
std::uint32_t PacketEngine::keep(const Packet& packet) {
  if (free_.empty()) {
    free_.push_back(static_cast<std::uint32_t>(lost_.size()));
    lost_.emplace_back();
  }
  const std::uint32_t place = free_.back();
  free_.pop_back();
  lost_[place] = packet;
  return place;
}

// Whether any later event matters to a flow; `next`: when the next timer or start is due.
bool PacketEngine::goes_on(Picoseconds next) const {
  if (next != kNever || !calendar_.empty()) return true;
  return next_outage() != kNever && flows_.not_arrived() != 0;
}

// Runs events by the clock of the flows: outages, samples of the history, polls of the watchdog.
void PacketEngine::run_control() {
  if (next_outage() <= clock_.now) apply_outage();
  if (clock_.flow_time() >= recorder_.next_at()) {
    record();
    is_resting_ = calendar_.empty();
  }
  if (clock_.flow_time() >= storms_.next_at()) poll();
  schedule_control();
}

void PacketEngine::schedule_control() {
  next_control_at_ = next_outage();
  if (const Picoseconds at = recorder_.next_at(); at != kNever && !is_resting_)
    next_control_at_ = std::min(next_control_at_, clock_.packet_time(at));
  if (const Picoseconds at = storms_.next_at(); at != kNever)
    next_control_at_ = std::min(next_control_at_, clock_.packet_time(at));
}

void PacketEngine::record() {
  recorder_.look(link_queues_, clock_.now, clock_.flow_time());
}

// Something happens again after nothing did.
void PacketEngine::wake() {
  is_resting_ = false;
  record();
  schedule_control();
}

// So much time is over at once.
void PacketEngine::pass(Picoseconds time) {
  clock_.skipped += time;
  schedule_control();
  if (recorder_.is_on()) record();
}

void PacketEngine::set_timer(Picoseconds at, TimerKind what, std::uint32_t of) {
  timers_.push({at, order_++, what, of});
}

MixedReport PacketEngine::report() const {
  MixedReport report;
  for (std::uint32_t flow = 0; flow < flows_.traffic().flows().size(); ++flow)
    report.flows.push_back(flows_.times(flow));
  link_queues_.report(report, clock_.now);
  report.end = {seconds(flows_.end())};
  report.packets = packets_;
  report.crossings = link_queues_.crossings();
  report.events = events_;
  report.cnps = cnps_;
  report.lost = lost_count_;
  report.lost_on_links = lost_on_links_;
  report.expired = expired_;
  report.bound = {bound_ * 1e-12};
  report.skipped = {seconds(clock_.skipped)};
  report.fast_forwards = fast_forwards_;
  report.fast_forwards_by_max_min = fast_forwards_by_max_min_;
  report.fast_forwards_by_recurrence = fast_forwards_by_recurrence_;
  report.cycles = cycles_repeated_;
  report.reordered = reordered_;
  report.reorder_buffer_peak = reorder_buffer_peak_;
  report.quiescent_at = {seconds(quiescent_at_)};
  report.storms = storms_.storms(link_queues_);
  report.not_arrived = flows_.not_arrived();
  report.is_stopped = is_stopped() && report.not_arrived != 0;
  if (report.is_stopped) report.end = std::max(report.end, report.quiescent_at);
  if (report.not_arrived != 0) report.deadlock = find_cycle(pause_dependencies(link_queues_));
  return report;
}

}  // namespace regatta::fabric::packet
