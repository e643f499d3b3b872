// fabric/internal/packet/link_queues.h: the links, the queues before them, and how switches react
// to long queues: they pause senders (link_pauses.h), mark packets, or drop them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "regatta/network/fabric/internal/packet/calendar_queue.h"
#include "regatta/network/fabric/internal/packet/fifo_queue.h"
#include "regatta/network/fabric/internal/packet/link_event.h"
#include "regatta/network/fabric/internal/packet/link_pauses.h"
#include "regatta/network/fabric/internal/packet/packet.h"
#include "regatta/network/fabric/internal/packet/random.h"
#include "regatta/network/fabric/internal/packet/recurrence_detector.h"
#include "regatta/network/fabric/internal/pfc_watchdog.h"
#include "regatta/network/fabric/packet_simulation.h"

namespace regatta::fabric::packet {

class LinkQueues {
 public:
  LinkQueues(const PacketNetwork& network, const PacketOptions& options, CalendarQueue& calendar,
             Random& random);

  // Adds the packet to the queue of the link; false: there is no room, the packet is lost.
  bool enqueue(std::uint32_t link, Packet packet, Picoseconds now) {
    LinkQueue& link_queue = links_[link];
    const Picoseconds wait = backlog(link, now);
    if (can_pause_) {
      if (!pauses_.reserve(packet.from, packet.bytes + header_, now)) return false;
    } else if (wait > link_queue.most_wait) {
      return false;
    }
    if (marks_ && is_to_mark(link_queue, wait)) {
      packet.is_marked = true;
      ++link_queue.marks;
    }
    link_queue.longest = std::max(link_queue.longest, wait);
    link_queue.waited += static_cast<double>(wait);
    ++link_queue.queued;
    if (!can_pause_) {
      // The link never pauses, so the time at which the packet leaves is known now: `flying` is the
      // only queue needed.
      transmit(link, packet, now + wait);
    } else if (link_queue.waiting.empty() && !pauses_.is_paused(link) &&
               link_queue.free_at <= now) {
      leave(link, packet, now);
    } else {
      link_queue.waiting.push(packet);
      link_queue.waiting_time += network_.links[link].time_of(packet.bytes + header_);
      schedule_next_send(link, now);
    }
    return true;
  }

  // How long a packet that comes now waits if nothing is paused.
  Picoseconds backlog(std::uint32_t link, Picoseconds now) const {
    const LinkQueue& link_queue = links_[link];
    return link_queue.waiting_time + std::max<Picoseconds>(link_queue.free_at - now, 0);
  }

  // Transmits from `start` on, when the link is free, and schedules the arrival.
  void transmit(std::uint32_t link, const Packet& packet, Picoseconds start) {
    LinkQueue& link_queue = links_[link];
    const PacketNetwork::Link& of = network_.links[link];
    link_queue.free_at = start + of.time_of(packet.bytes + header_);
    link_queue.bytes += packet.bytes;
    const Picoseconds arrives = link_queue.free_at + of.latency;
    if (link_queue.flying.empty()) calendar_.push(event_number(link, LinkEvent::kArrival), arrives);
    link_queue.flying.push({arrives, packet});
    ++crossings_;
  }

  // Returns the packet that arrives at the end of the link, and schedules the next arrival.
  Packet receive(std::uint32_t link) {
    LinkQueue& link_queue = links_[link];
    const Packet packet = link_queue.flying.pop().packet;
    if (!link_queue.flying.empty())
      calendar_.push(event_number(link, LinkEvent::kArrival), link_queue.flying.front().arrives);
    return packet;
  }

  // The packet has not crossed the link, which is dead.
  void cancel_transmit(std::uint32_t link, const Packet& packet) {
    links_[link].bytes -= packet.bytes;
  }

  // A switch's link is free.
  void send_waiting(std::uint32_t link, Picoseconds now) {
    LinkQueue& link_queue = links_[link];
    link_queue.has_send_scheduled = false;
    if (pauses_.is_paused(link) || link_queue.waiting.empty()) return;
    const Packet packet = link_queue.waiting.pop();
    link_queue.waiting_time -= network_.links[link].time_of(packet.bytes + header_);
    leave(link, packet, now);
    schedule_next_send(link, now);
  }

  // A pause frame reaches the begin of the link.
  void receive_pause_frame(std::uint32_t link, Picoseconds now) {
    if (pauses_.receive_frame(link, now)) schedule_next_send(link, now);
  }

  // So many whole packets cross the link while time fast-forwards.
  void fast_forward(std::uint32_t link, std::uint64_t packets, std::uint64_t bytes) {
    links_[link].bytes += packets * bytes;
    links_[link].skipped += packets;
    crossings_ += packets;
  }
  void add_crossings(std::uint64_t packets) { crossings_ += packets; }

  // Adds all state that later events depend on.
  void fingerprint(StateFingerprint& fingerprint, Picoseconds now) const;

  // Counters, per link.
  struct Counts {
    std::uint64_t bytes = 0;
    std::uint64_t sent = 0;  // packets, by switches
    std::uint64_t marks = 0;
    LinkPauses::Counts pauses;
  };
  std::vector<Counts> counts() const;
  // Adds the counts since `before` another `times` times, and raises the flow numbers of all
  // packets in flight by `shift`.
  void repeat(const std::vector<Counts>& before, std::uint64_t times, std::uint32_t shift);

  std::size_t count() const { return links_.size(); }
  struct LinkSample {
    double bytes = 0;    // that crossed the link up to now, without headers
    double waiting = 0;  // bytes, at most since the last sample
  };
  LinkSample sample(std::uint32_t link, Picoseconds now);

  Picoseconds free_at(std::uint32_t link) const { return links_[link].free_at; }
  std::uint64_t crossings() const { return crossings_; }

  // Writes what it knows into the vectors per link; `now`: the end.
  void report(PacketReport& report, Picoseconds now) const;
  // The switch's counters of the queue before the link; `at` and `is_up` are not sampled.
  PfcSample pfc_sample(std::uint32_t link, Picoseconds now) const;

  LinkPauses& pauses() { return pauses_; }
  const LinkPauses& pauses() const { return pauses_; }
  // The packets before the link, where links pause.
  const FifoQueue<Packet>& waiting(std::uint32_t link) const { return links_[link].waiting; }

 private:
  struct Flying {
    Picoseconds arrives = 0;
    Packet packet = {};
  };
  struct LinkQueue {
    std::uint64_t sent() const { return queued - waiting.size() + skipped; }

    FifoQueue<Flying> flying;  // with pauses; without them also what waits
    Picoseconds free_at = 0;
    Picoseconds longest = 0;         // wait, since the last sample
    Picoseconds longest_before = 0;  // and until then
    Picoseconds most_wait = kNever;  // more is dropped
    Picoseconds mark_from = kNever;  // waits that are marked by chance
    Picoseconds mark_to = kNever;    // longer ones always are
    double waited = 0;               // picoseconds, by all that queued
    std::uint64_t queued = 0;
    std::uint64_t skipped = 0;  // packets sent in skipped time
    std::uint64_t bytes = 0;
    std::uint64_t marks = 0;
    FifoQueue<Packet> waiting;  // with pauses
    Picoseconds waiting_time = 0;
    bool has_send_scheduled = false;  // kFree is in the calendar
  };

  bool is_to_mark(const LinkQueue& link_queue, Picoseconds wait) {
    if (wait <= link_queue.mark_from) return false;
    if (wait > link_queue.mark_to) return true;
    return random_.part() * static_cast<double>(link_queue.mark_to - link_queue.mark_from) <
           mark_part_ * static_cast<double>(wait - link_queue.mark_from);
  }

  void leave(std::uint32_t link, const Packet& packet, Picoseconds now) {
    pauses_.release(packet.from, packet.bytes + header_, now);
    transmit(link, packet, now);
  }

  void schedule_next_send(std::uint32_t link, Picoseconds now) {
    LinkQueue& link_queue = links_[link];
    if (link_queue.has_send_scheduled || pauses_.is_paused(link) || link_queue.waiting.empty())
      return;
    link_queue.has_send_scheduled = true;
    calendar_.push(event_number(link, LinkEvent::kFree), std::max(link_queue.free_at, now));
  }

  const PacketNetwork& network_;
  const std::uint64_t header_;
  const std::uint64_t whole_;  // bytes of a packet, at most, on the wire
  const double payload_;       // part of these
  const bool can_pause_;
  const bool marks_;
  const double mark_part_;
  CalendarQueue& calendar_;
  Random& random_;
  LinkPauses pauses_;
  std::vector<LinkQueue> links_;
  std::uint64_t crossings_ = 0;
};

}  // namespace regatta::fabric::packet
