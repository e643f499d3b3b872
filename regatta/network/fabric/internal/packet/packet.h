// fabric/internal/packet/packet.h: a packet under way, and what a network looks like to it.
#pragma once

#include <cstdint>
#include <vector>

#include "regatta/network/fabric/internal/packet/calendar.h"

namespace regatta::fabric::packet {

inline constexpr std::uint32_t kNone = ~0U;

struct Packet {
  std::uint32_t flow;
  std::uint32_t connection;  // pair * connections + connection
  std::uint32_t sequence;    // of the connection
  std::uint32_t next;        // where it stands in Network::ways
  std::uint32_t from;        // the link that it came by
  std::uint16_t bytes;       // without header
  std::uint8_t hops;         // links that it has crossed
  bool is_marked : 1;        // congestion experienced
  bool is_again : 1;         // it was lost before
};

struct Network {
  struct Link {
    std::uint64_t rate;  // picoseconds per byte, in units of 2^-20
    Picoseconds latency;
    std::uint32_t end;  // the node it leads to
    bool is_to_host = false;
    bool is_from_host = false;
    bool is_pipe = false;  // inside a server

    Picoseconds time_of(std::uint64_t bytes) const {
      return static_cast<Picoseconds>((bytes * rate) >> 20U);
    }
    std::uint64_t bytes_in(Picoseconds time) const {
      return static_cast<std::uint64_t>(static_cast<double>(time) * 0x1p20 /
                                        static_cast<double>(rate));
    }
  };
  std::vector<Link> links;  // by number_of()

  // The links of each connection's way, one after the other. An entry with kBack leads back to an
  // earlier one: the routes have a loop.
  static constexpr std::uint32_t kBack = 1U << 31U;
  static constexpr std::uint32_t kNowhere = ~0U;  // the way ends before its target
  std::vector<std::uint32_t> ways;
  std::vector<std::uint32_t> way_of;  // per connection: where it begins; kNone: inside a server
  struct Target {
    std::uint32_t leaf;  // its node
    std::uint32_t link;  // from there
  };
  std::vector<Target> targets;          // per pair
  std::vector<Picoseconds> latency_of;  // per connection: of its way, as far as it is written
};

}  // namespace regatta::fabric::packet
