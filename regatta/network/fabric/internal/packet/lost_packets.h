// fabric/internal/packet/lost_packets.h: packets that are to be sent again.
#pragma once

#include <cstdint>
#include <vector>

#include "regatta/network/fabric/internal/packet/packet.h"

namespace regatta::fabric::packet {

class LostPackets {
 public:
  // Keeps the packet until consume(); returns its place.
  std::uint32_t keep(const Packet& packet) {
    if (free_.empty()) {
      free_.push_back(static_cast<std::uint32_t>(packets_.size()));
      packets_.emplace_back();
    }
    const std::uint32_t place = free_.back();
    free_.pop_back();
    packets_[place] = packet;
    return place;
  }
  Packet consume(std::uint32_t place) {
    free_.push_back(place);
    return packets_[place];
  }

  // Keeps the packet, which is not sent again before unpark(). `lost_at`: by the flows' clock.
  void park(const Packet& packet, Picoseconds lost_at) {
    parked_.push_back({keep(packet), lost_at});
  }
  // Calls use(place, lost_at) for each parked packet; they stay at their places until consume().
  template <typename Use>
  void unpark(Use&& use) {
    for (const Parked& one : parked_)
      use(one.place, one.lost_at);
    parked_.clear();
  }

 private:
  struct Parked {
    std::uint32_t place;
    Picoseconds lost_at;
  };
  std::vector<Packet> packets_;
  std::vector<std::uint32_t> free_;  // places
  std::vector<Parked> parked_;
};

}  // namespace regatta::fabric::packet
