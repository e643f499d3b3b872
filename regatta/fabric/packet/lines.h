// fabric/packet/lines.h: the links and the queues before them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "regatta/fabric/packet/calendar.h"
#include "regatta/fabric/packet/fifo.h"
#include "regatta/fabric/packet/packet.h"

namespace regatta::fabric::packet {

// What happens at a link, as events of a calendar.
enum class LineEvent : std::uint8_t { kArrival, kFree };
inline constexpr std::uint32_t kLineEvents = 2;

class Lines {
 public:
  Lines(const Network& network, std::uint64_t header, Calendar& calendar)
      : network_(network), header_(header), calendar_(calendar), lines_(network.links.size()) {}

  static std::uint32_t number(std::uint32_t link, LineEvent event) {
    return link * kLineEvents + static_cast<std::uint32_t>(event);
  }

  // Behind all that waits for the link. Nothing ever holds a link up, so it is known at once when
  // the packet leaves: no queue needs to be kept beside that of packets to arrive.
  void queue(std::uint32_t link, const Packet& packet, Picoseconds now) {
    Line& line = lines_[link];
    const Picoseconds start = std::max(line.free_at, now);
    line.longest = std::max(line.longest, start - now);
    transmit(link, packet, start);
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

  Picoseconds free_at(std::uint32_t link) const { return lines_[link].free_at; }
  double bytes(std::uint32_t link) const { return static_cast<double>(lines_[link].bytes); }
  std::uint64_t crossings() const { return crossings_; }
  // Bytes that waited for the link, at most.
  double longest_queue(std::uint32_t link) const {
    return static_cast<double>(network_.links[link].bytes_in(lines_[link].longest));
  }

 private:
  struct Flying {
    Picoseconds arrives = 0;
    Packet packet = {};
  };
  struct Line {
    Fifo<Flying> flying;  // or waiting before it
    Picoseconds free_at = 0;
    Picoseconds longest = 0;  // wait
    std::uint64_t bytes = 0;
  };

  const Network& network_;
  const std::uint64_t header_;
  Calendar& calendar_;
  std::vector<Line> lines_;
  std::uint64_t crossings_ = 0;
};

}  // namespace regatta::fabric::packet
