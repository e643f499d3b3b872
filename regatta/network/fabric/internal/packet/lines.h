// fabric/internal/packet/lines.h: the links, the queues before them, and what switches do when
// these grow: pause who sends, mark, or drop.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "regatta/network/fabric/internal/packet/calendar.h"
#include "regatta/network/fabric/internal/packet/fifo.h"
#include "regatta/network/fabric/internal/packet/packet.h"
#include "regatta/network/fabric/internal/packet/random.h"
#include "regatta/network/fabric/internal/packet/recurrence.h"
#include "regatta/network/fabric/internal/pause_watch.h"
#include "regatta/network/fabric/packet_simulation.h"

namespace regatta::fabric::packet {

// What happens at a link, as events of a calendar: a packet reaches its end; it is free for the
// next one; the word to pause, or to go on, reaches its begin.
enum class LineEvent : std::uint8_t { kArrival, kFree, kWord };
inline constexpr std::uint32_t kLineEvents = 3;

class Lines {
 public:
  Lines(const Network& network, const PacketOptions& options, Calendar& calendar, Random& random);

  static std::uint32_t number(std::uint32_t link, LineEvent event) {
    return link * kLineEvents + static_cast<std::uint32_t>(event);
  }

  // Behind all that waits for the link; false: there is no room, it is lost.
  bool queue(std::uint32_t link, Packet packet, Picoseconds now) {
    Line& line = lines_[link];
    const Picoseconds wait = backlog(link, now);
    if (pauses_) {
      if (!hold(packet, now)) return false;
    } else if (wait > line.most_wait) {
      return false;
    }
    if (marks_ && is_to_mark(line, wait)) {
      packet.is_marked = true;
      ++line.marks;
    }
    line.longest = std::max(line.longest, wait);
    line.waited += wait;
    ++line.queued;
    if (!pauses_) {
      // Nothing ever holds the link up, so it is known at once when the packet leaves: no queue
      // needs to be kept beside that of packets to arrive.
      transmit(link, packet, now + wait);
    } else if (line.waiting.empty() && !line.is_paused && line.free_at <= now) {
      leave(link, packet, now);
    } else {
      line.waiting.push(packet);
      line.waiting_time += network_.links[link].time_of(packet.bytes + header_);
      look_again(link, now);
    }
    return true;
  }

  // How long a packet that comes now waits if nothing is paused.
  Picoseconds backlog(std::uint32_t link, Picoseconds now) const {
    const Line& line = lines_[link];
    return line.waiting_time + std::max<Picoseconds>(line.free_at - now, 0);
  }

  // From `start` on, when the link is free. The arrival is in the calendar.
  void transmit(std::uint32_t link, const Packet& packet, Picoseconds start) {
    Line& line = lines_[link];
    const Network::Link& of = network_.links[link];
    line.free_at = start + of.time_of(packet.bytes + header_);
    line.bytes += packet.bytes;
    const Picoseconds arrives = line.free_at + of.latency;
    if (line.flying.empty()) calendar_.push(number(link, LineEvent::kArrival), arrives);
    line.flying.push({arrives, packet});
    ++crossings_;
  }

  // The packet that has arrived at the end of the link; the next one is in the calendar.
  Packet take(std::uint32_t link) {
    Line& line = lines_[link];
    const Packet packet = line.flying.pop().packet;
    if (!line.flying.empty())
      calendar_.push(number(link, LineEvent::kArrival), line.flying.front().arrives);
    return packet;
  }

  // It has not crossed the link, which is dead.
  void take_back(std::uint32_t link, const Packet& packet) { lines_[link].bytes -= packet.bytes; }

  // A switch's link is free.
  void send_waiting(std::uint32_t link, Picoseconds now) {
    Line& line = lines_[link];
    line.is_looking = false;
    if (line.is_paused || line.waiting.empty()) return;
    const Packet packet = line.waiting.pop();
    line.waiting_time -= network_.links[link].time_of(packet.bytes + header_);
    leave(link, packet, now);
    look_again(link, now);
  }

  // The word that was on its way: to pause if the link goes, else to go on.
  void take_word(std::uint32_t link, Picoseconds now) {
    Line& line = lines_[link];
    line.words.pop();
    if (!line.words.empty()) calendar_.push(number(link, LineEvent::kWord), line.words.front());
    line.is_paused = !line.is_paused;
    if (line.is_paused) {
      ++line.pauses;
      line.paused_since = now;
    } else {
      line.paused_for += now - line.paused_since;
      longest_pause_ = std::max(longest_pause_, now - line.paused_since);
      --asked_;
      look_again(link, now);
    }
  }

  // So many whole packets cross the link while time leaps.
  void leap(std::uint32_t link, std::uint64_t packets, std::uint64_t bytes) {
    lines_[link].bytes += packets * bytes;
    crossings_ += packets;
  }
  void add_crossings(std::uint64_t packets) { crossings_ += packets; }

  // All that bears on what happens next.
  void print(Print& print, Picoseconds now) const;

  // What counts up, per link.
  struct Counts {
    std::uint64_t bytes = 0;
    std::uint64_t marks = 0;
    std::uint64_t pauses = 0;
    Picoseconds paused_for = 0;
  };
  std::vector<Counts> counts() const;
  // What was counted since `before` comes `times` more, and all that is under way is of flows
  // whose numbers are `shift` higher.
  void repeat(const std::vector<Counts>& before, std::uint64_t times, std::uint32_t shift);

  std::size_t count() const { return lines_.size(); }
  struct Glance {
    double bytes = 0;    // that crossed the link up to now, without headers
    double waiting = 0;  // bytes, at most since the last glance
  };
  Glance glance(std::uint32_t link, Picoseconds now);

  // No link pauses, or is about to.
  bool is_calm() const { return asked_ == 0; }
  Picoseconds longest_pause() const { return longest_pause_; }
  bool is_paused(std::uint32_t link) const { return lines_[link].is_paused; }
  Picoseconds free_at(std::uint32_t link) const { return lines_[link].free_at; }
  std::uint64_t crossings() const { return crossings_; }

  // Writes what it knows into the vectors per link; `now`: the end.
  void report(PacketReport& report, Picoseconds now) const;
  // Links that wait for each other, where nothing happens any more; empty: none.
  Circle find_waits() const;
  // Those that are paused, and which of them what came by each waits for at its end.
  std::vector<std::uint32_t> paused() const;
  std::vector<std::vector<std::uint32_t>> waits() const;
  // What a switch's counters say of the queue before the link; of the link itself it says nothing.
  PauseSample pause_sample(std::uint32_t link, Picoseconds now) const;

  // The NIC at the end of the link asks to pause, or to go on if it has asked.
  void ask_by_nic(std::uint32_t link, Picoseconds now) { send_word(link, now); }
  bool is_asked(std::uint32_t link) const { return lines_[link].is_asked; }

 private:
  struct Flying {
    Picoseconds arrives = 0;
    Packet packet = {};
  };
  struct Line {
    Fifo<Flying> flying;  // with pauses; without them also what waits
    Picoseconds free_at = 0;
    Picoseconds longest = 0;         // wait, since the last glance
    Picoseconds longest_before = 0;  // and until then
    Picoseconds most_wait = kNever;  // more is dropped
    Picoseconds mark_from = kNever;  // waits that are marked by chance
    Picoseconds mark_to = kNever;    // longer ones always are
    Picoseconds waited = 0;          // by all that queued
    std::uint64_t queued = 0;
    std::uint64_t bytes = 0;
    std::uint64_t marks = 0;
    Fifo<Packet> waiting;  // with pauses
    Picoseconds waiting_time = 0;
    std::uint64_t held = 0;       // bytes at the switch at its end that came by it
    std::uint64_t most_held = 0;  // for which there is room
    std::uint64_t xoff = 0;       // more is too much
    Fifo<Picoseconds> words;      // when they reach its begin
    Picoseconds paused_since = 0;
    Picoseconds paused_for = 0;
    std::uint64_t pauses = 0;
    bool is_looking = false;  // kFree is in the calendar
    bool is_paused = false;
    bool is_asked = false;  // to pause, by its end
  };

  bool is_to_mark(const Line& line, Picoseconds wait) {
    if (wait <= line.mark_from) return false;
    if (wait > line.mark_to) return true;
    return random_.part() * static_cast<double>(line.mark_to - line.mark_from) <
           mark_part_ * static_cast<double>(wait - line.mark_from);
  }

  // Room for a packet in the buffer of the link that it came by.
  bool hold(const Packet& packet, Picoseconds now) {
    Line& in = lines_[packet.from];
    const std::uint64_t held = in.held + packet.bytes + header_;
    if (held > in.most_held) return false;
    in.held = held;
    if (held > in.xoff && !in.is_asked) send_word(packet.from, now);
    return true;
  }

  void leave(std::uint32_t link, const Packet& packet, Picoseconds now) {
    Line& in = lines_[packet.from];
    in.held -= packet.bytes + header_;
    if (in.is_asked && in.held <= xon_) send_word(packet.from, now);
    transmit(link, packet, now);
  }

  void send_word(std::uint32_t link, Picoseconds now) {
    Line& line = lines_[link];
    line.is_asked = !line.is_asked;
    if (line.is_asked) ++asked_;
    const Picoseconds arrives = now + network_.links[link].latency;
    if (line.words.empty()) calendar_.push(number(link, LineEvent::kWord), arrives);
    line.words.push(arrives);
  }

  void look_again(std::uint32_t link, Picoseconds now) {
    Line& line = lines_[link];
    if (line.is_looking || line.is_paused || line.waiting.empty()) return;
    line.is_looking = true;
    calendar_.push(number(link, LineEvent::kFree), std::max(line.free_at, now));
  }

  const Network& network_;
  const std::uint64_t header_;
  const std::uint64_t whole_;  // bytes of a packet, at most, on the wire
  const double payload_;       // part of these
  const bool pauses_;
  const bool marks_;
  std::uint64_t xon_ = 0;
  double mark_part_ = 0;
  Calendar& calendar_;
  Random& random_;
  std::vector<Line> lines_;
  std::uint64_t crossings_ = 0;
  std::uint64_t asked_ = 0;  // links that are to pause, and have not gone on
  Picoseconds longest_pause_ = 0;
};

}  // namespace regatta::fabric::packet
