// fabric/internal/packet/packet.h: a packet in flight, and what a network looks like to it.
#pragma once

#include <cstdint>
#include <vector>

#include "regatta/network/fabric/internal/packet/calendar_queue.h"

namespace regatta::fabric::packet {

inline constexpr std::uint32_t kNone = ~0U;

struct Packet {
  std::uint32_t flow;
  std::uint32_t connection;  // pair * connections + connection
  std::uint32_t sequence;    // of the connection
  std::uint32_t next;        // where it stands in PacketNetwork::paths
  std::uint32_t from;        // the link that it came by
  std::uint16_t bytes;       // without header
  std::uint8_t hops;         // links that it has crossed
  bool is_marked : 1;        // congestion experienced
  bool is_retransmit : 1;    // it was lost before
};

struct PacketNetwork {
  struct Link {
    std::uint64_t rate;  // picoseconds per byte, in units of 2^-shift
    Picoseconds latency;
    std::uint32_t end;  // the node it leads to
    std::uint8_t shift = 20;
    bool is_to_host = false;
    bool is_from_host = false;
    bool is_intra_server = false;  // inside a server

    // For one packet, of at most 2^18 bytes.
    Picoseconds time_of(std::uint64_t bytes) const {
      return static_cast<Picoseconds>((bytes * rate) >> shift);
    }
    double bytes_per_picosecond() const {
      return static_cast<double>(std::uint64_t{1} << shift) / static_cast<double>(rate);
    }
    std::uint64_t bytes_in(Picoseconds time) const {
      return static_cast<std::uint64_t>(static_cast<double>(time) * bytes_per_picosecond());
    }
  };
  std::vector<Link> links;  // by number_of()

  // The links of each connection's path, one after the other. An entry with kLoopsBack leads back
  // to an earlier one: the routes have a loop.
  static constexpr std::uint32_t kLoopsBack = 1U << 31U;
  static constexpr std::uint32_t kPathEnds = ~0U;  // the path ends before its target
  std::vector<std::uint32_t> paths;
  std::vector<std::uint32_t> path_of;  // per connection: where it begins; kNone: inside a server
  struct Target {
    std::uint32_t leaf;  // its node
    std::uint32_t link;  // from there
  };
  std::vector<Target> targets;          // per pair
  std::vector<Picoseconds> latency_of;  // per connection: of its path, as far as it is written
};

}  // namespace regatta::fabric::packet
