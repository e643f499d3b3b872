#include "regatta/network/fabric/internal/packet/packet_engine.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "regatta/base/core/result.h"
#include "regatta/network/fabric/internal/packet/packet_network.h"
#include "regatta/network/fabric/internal/packet/pause_dependencies.h"

namespace regatta::fabric::packet {
namespace {

constexpr std::uint64_t kEventsPerStopCheck = 4096;
constexpr std::uint8_t kMostHops = 64;  // as the time to live that Linux gives to packets

Error too_late() {
  return {Code::kInvalidInput,
          fmt::format("packets take more than {:.0e} s, which is more than picoseconds can count; "
                      "send fewer bytes, or take faster links or the flow level",
                      seconds(kLatest))};
}

}  // namespace

PacketEngine::PacketEngine(PacketNetwork network, const PacketSetup& setup,
                           const FlowGraph& traffic, const PacketOptions& options)
    : state_(std::move(network), setup, traffic, options),
      setup_(setup),
      policy_(options.policy),
      load_balancing_(options.load_balancing),
      connections_(setup.pairs.connections),
      retransmit_after_(picoseconds(options.retransmit_after.value)),
      stop_(options.stop),
      load_balancer_(state_.network, setup, options, state_.link_queues, state_.random),
      is_by_packet_(load_balancer_.is_by_packet()),
      receivers_(state_.network.path_of.size()) {}

Result<MixedReport> PacketEngine::run() {
  for (;;) {
    if (events_ % kEventsPerStopCheck == 0 && is_stopped()) break;
    const Picoseconds timer = state_.timers.next_at();
    const Picoseconds start_at = state_.flows.next_start(state_.clock);
    const Picoseconds due = std::min({timer, start_at, state_.next_control_at});
    const Picoseconds check_at = fast_forwarder_ ? fast_forwarder_->check_at() : kNever;
    const CalendarQueue::Event event = state_.calendar.pop(std::min(due, check_at));
    if (event.at != kNever) {
      state_.clock.now = event.at;
      handle(event);
    } else if (check_at < due && !state_.calendar.empty()) {
      state_.clock.now = check_at;
      fast_forwarder_->check_steady_rates();
    } else if (due != kNever && state_.next_control_at == due &&
               goes_on(std::min(timer, start_at))) {
      state_.clock.now = due;
      if (state_.is_too_late()) return too_late();
      run_control();
      continue;
    } else if (timer <= start_at && timer != kNever) {
      state_.clock.now = timer;
      wake();
      handle(state_.timers.pop());
    } else if (start_at != kNever) {
      state_.clock.now = start_at;
      wake();
      start(state_.flows.start());
    } else {
      break;
    }
    ++events_;
  }
  if (state_.flows.not_arrived() != 0 && !is_stopped())
    if (const auto unmet = unmet_dependencies(state_.flows.traffic()); !unmet.empty())
      return dependency_cycle_error(state_.flows.traffic(), unmet);
  state_.observers.record();
  quiescent_at_ = state_.clock.flow_time();
  if (state_.flows.not_arrived() != 0 && !is_stopped()) state_.observers.poll_until_quiescent();
  return report();
}

inline void PacketEngine::handle(const CalendarQueue::Event& event) {
  const std::uint32_t link = event.number / kLinkEvents;
  switch (static_cast<LinkEvent>(event.number % kLinkEvents)) {
    case LinkEvent::kArrival:
      arrive(link);
      break;
    case LinkEvent::kFree:
      if (state_.network.links[link].is_from_host)
        packet_sent(link);
      else
        state_.link_queues.send_waiting(link, state_.clock.now);
      break;
    case LinkEvent::kPauseFrame:
      state_.link_queues.receive_pause_frame(link, state_.clock.now);
      if (state_.network.links[link].is_from_host) send_next(link);
      if (fast_forwarder_) fast_forwarder_->pause_frame_arrived(link);
      break;
  }
}

void PacketEngine::handle(const TimerQueue::Timer& timer) {
  switch (timer.what) {
    case TimerKind::kWake:
      send_next(timer.of);
      break;
    case TimerKind::kCnp:
      ++cnps_;
      state_.senders.receive_cnp(timer.of, state_.clock.now);
      break;
    case TimerKind::kRetransmit: {
      const Packet packet = lost_.consume(timer.of);
      state_.senders.retransmit(packet);
      send_next(state_.senders.first_link(packet.connection));
      break;
    }
  }
}

void PacketEngine::start(std::uint32_t flow) {
  const std::uint32_t first = state_.flows.pair(flow) * connections_;
  const std::uint64_t bytes = state_.flows.bytes(flow);
  if (state_.network.path_of[first] == kNone) {
    state_.flows.sent(flow, state_.clock);
    state_.flows.arrived(flow, state_.clock);
    return;
  }
  std::uint32_t parts = 0;
  std::uint64_t packets = 0;
  for (; parts < connections_; ++parts) {
    const std::uint64_t part = state_.senders.part(bytes, parts);
    if (part == 0 && parts != 0) break;  // an empty message is one empty packet
    const std::uint64_t payload = state_.senders.payload(part);
    packets += std::max<std::uint64_t>((part + payload - 1) / payload, 1);
  }
  REGATTA_CHECK(packets < kNone);
  state_.flows.expect(flow, parts, static_cast<std::uint32_t>(packets));
  if (fast_forwarder_) fast_forwarder_->changed();
  for (std::uint32_t i = 0; i < parts; ++i) {
    state_.senders.add(first + i, flow, bytes);
    send_next(state_.senders.first_link(first + i));
  }
  if (fast_forwarder_) fast_forwarder_->flow_started(flow);
}

// A NIC has sent a packet.
inline void PacketEngine::packet_sent(std::uint32_t link) {
  if (std::uint32_t& ending = state_.senders.ending(link); ending != kNone) {
    const std::uint32_t flow = ending;
    ending = kNone;
    state_.flows.part_sent(flow, state_.clock);
    if (fast_forwarder_) fast_forwarder_->changed();
  }
  state_.senders.is_busy(link) = false;
  send_next(link);
}

// Sends the next packet of a NIC, if it can.
inline void PacketEngine::send_next(std::uint32_t link) {
  if (state_.senders.is_busy(link) || state_.link_queues.pauses().is_paused(link)) return;
  if (const Picoseconds at = state_.senders.next_at(link, state_.clock.now);
      at != state_.clock.now) {
    if (at != kNever) state_.timers.push_wake(at, link, state_.clock.now);
    return;
  }
  const auto next = state_.senders.next(
      link, state_.clock.now, [this](std::uint32_t flow) { return state_.flows.bytes(flow); });
  if (next.is_last) state_.senders.ending(link) = next.packet.flow;
  state_.senders.is_busy(link) = true;
  if (fast_forwarder_) fast_forwarder_->sent(next.packet);
  state_.link_queues.transmit(link, next.packet, state_.clock.now);
  state_.calendar.push(event_number(link, LinkEvent::kFree), state_.link_queues.free_at(link));
}

inline void PacketEngine::arrive(std::uint32_t link) {
  Packet packet = state_.link_queues.receive(link);
  if (!state_.outages.is_up(link)) [[unlikely]] {
    state_.link_queues.cancel_transmit(link, packet);
    lose_on(link, packet);
    return;
  }
  if (state_.network.links[link].is_to_host) {
    receive(packet);
    return;
  }
  const std::uint32_t next = next_link(link, packet);
  if (next == kNone && !state_.outages.is_over()) {
    lose_on(link, packet);
    return;
  }
  if (packet.hops++ == kMostHops || next == kNone) {
    lose_for_good(packet);
    return;
  }
  packet.from = link;
  if (state_.link_queues.enqueue(next, packet, state_.clock.now)) return;
  ++lost_count_;
  lose(packet);
}

// The link that a packet takes after `link`; kNone at the end of its path.
inline std::uint32_t PacketEngine::next_link(std::uint32_t link, Packet& packet) {
  if (is_by_packet_)
    return load_balancer_.next(state_.network.links[link].end, packet, state_.clock.now);
  std::uint32_t next = state_.network.paths[packet.next];
  if ((next & PacketNetwork::kLoopsBack) != 0) {
    if (next == PacketNetwork::kPathEnds) return kNone;
    packet.next = next & ~PacketNetwork::kLoopsBack;
    next = state_.network.paths[packet.next];
  }
  ++packet.next;
  return next;
}

inline void PacketEngine::receive(const Packet& packet) {
  ++state_.packets;
  if (fast_forwarder_) fast_forwarder_->arrived(packet);
  if (packet.is_retransmit && state_.senders.release(packet.connection))
    send_next(state_.senders.first_link(packet.connection));
  receivers_.receive(packet);
  if (packet.is_marked)
    if (const auto at = state_.senders.cnp_of(packet.connection, state_.clock.now))
      state_.timers.push(*at, TimerKind::kCnp, packet.connection);
  state_.flows.packet_arrived(packet.flow, state_.clock);
}

void PacketEngine::lose(const Packet& packet) {
  if (fast_forwarder_) fast_forwarder_->lost(packet);
  state_.timers.push(state_.clock.now + retransmit_after_, TimerKind::kRetransmit,
                     lost_.keep(packet));
}

// Whether any later event matters to a flow; `next`: when the next timer or start is due.
bool PacketEngine::goes_on(Picoseconds next) const {
  if (next != kNever || !state_.calendar.empty()) return true;
  return !state_.outages.is_over() && state_.flows.not_arrived() != 0;
}

// Runs events by the clock of the flows: outages and observers.
void PacketEngine::run_control() {
  if (state_.next_outage_at() <= state_.clock.now) apply_outage();
  state_.observers.run_due(state_.calendar.empty());
  state_.schedule_control();
}

// Observers that rest while nothing happens go on.
void PacketEngine::wake() {
  if (!state_.observers.is_resting()) return;
  state_.observers.wake();
  state_.schedule_control();
}

MixedReport PacketEngine::report() const {
  MixedReport report;
  for (std::uint32_t flow = 0; flow < state_.flows.traffic().flows().size(); ++flow)
    report.flows.push_back(state_.flows.times(flow));
  state_.link_queues.report(report, state_.clock.now);
  report.end = {seconds(state_.flows.end())};
  report.packets = state_.packets;
  report.crossings = state_.link_queues.crossings();
  report.events = events_;
  report.cnps = cnps_;
  report.lost = lost_count_;
  report.lost_on_links = lost_on_links_;
  report.expired = expired_;
  report.skipped = {seconds(state_.clock.skipped)};
  if (fast_forwarder_) fast_forwarder_->report(report);
  report.reordered = receivers_.reordered();
  report.reorder_buffer_peak = receivers_.buffer_peak();
  report.quiescent_at = {seconds(quiescent_at_)};
  report.storms = state_.observers.storms();
  report.not_arrived = state_.flows.not_arrived();
  report.is_stopped = is_stopped() && report.not_arrived != 0;
  if (report.is_stopped) report.end = std::max(report.end, report.quiescent_at);
  if (report.not_arrived != 0) report.deadlock = find_cycle(pause_dependencies(state_.link_queues));
  return report;
}

}  // namespace regatta::fabric::packet
