// fabric/packet/senders.h: the connections of each NIC and the messages that they still have to
// send.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "regatta/fabric/packet/fifo.h"
#include "regatta/fabric/packet/packet.h"

namespace regatta::fabric::packet {

class Senders {
 public:
  Senders(const Network& network, std::size_t flows, std::uint32_t connections, std::uint64_t mtu)
      : network_(network),
        mtu_(mtu),
        per_pair_(connections),
        connections_(network.way_of.size()),
        following_(flows * connections, kNone),
        nics_(network.links.size()) {}

  // Of a message of so many bytes, what connection `i` of a pair sends.
  std::uint64_t part(std::uint64_t bytes, std::uint32_t i) const {
    return bytes / per_pair_ + (i < bytes % per_pair_ ? 1 : 0);
  }

  // The connection is to send its part of the flow after what it already has to. A part without
  // bytes is a packet without any.
  void add(std::uint32_t connection, std::uint32_t flow, std::uint64_t bytes) {
    Connection& one = connections_[connection];
    const std::uint32_t message = flow * per_pair_ + connection % per_pair_;
    if (one.first == kNone) {
      one.first = one.last = message;
      one.left = part(bytes, connection % per_pair_);
      nics_[first_link(connection)].ready.push(connection);
      return;
    }
    following_[one.last] = message;
    one.last = message;
  }

  std::uint32_t first_link(std::uint32_t connection) const {
    return network_.ways[network_.way_of[connection]];
  }

  struct Next {
    Packet packet;
    bool is_last = false;  // of its part of the flow
  };
  bool has_next(std::uint32_t link) const { return !nics_[link].ready.empty(); }
  // The next packet of the NIC. bytes_of(flow) is asked when a message begins.
  template <typename BytesOf>
  Next next(std::uint32_t link, BytesOf&& bytes_of) {
    const std::uint32_t connection = nics_[link].ready.pop();
    Connection& one = connections_[connection];
    const std::uint64_t bytes = std::min(one.left, mtu_);
    one.left -= bytes;
    const std::uint32_t message = one.first;
    Next next{.packet = {.flow = message / per_pair_,
                         .connection = connection,
                         .sequence = one.sequence++,
                         .next = network_.way_of[connection] + 1,
                         .from = link,
                         .bytes = static_cast<std::uint16_t>(bytes),
                         .hops = 1,
                         .is_marked = false},
              .is_last = one.left == 0};
    if (next.is_last) {
      one.first = following_[message];
      if (one.first != kNone)
        one.left = part(bytes_of(one.first / per_pair_), connection % per_pair_);
    }
    if (one.first != kNone) nics_[link].ready.push(connection);
    return next;
  }

  // What the NIC is sending the last packet of; kNone: it is not.
  std::uint32_t& ending(std::uint32_t link) { return nics_[link].ending; }
  bool& is_busy(std::uint32_t link) { return nics_[link].is_busy; }

 private:
  struct Connection {
    std::uint64_t left = 0;       // bytes of `first`
    std::uint32_t first = kNone;  // messages: flow * connections + connection
    std::uint32_t last = kNone;
    std::uint32_t sequence = 0;
  };
  struct Nic {
    Fifo<std::uint32_t> ready;  // connections with something to send
    std::uint32_t ending = kNone;
    bool is_busy = false;
  };

  const Network& network_;
  const std::uint64_t mtu_;
  const std::uint32_t per_pair_;  // connections
  std::vector<Connection> connections_;
  std::vector<std::uint32_t> following_;  // per message: the next one of its connection
  std::vector<Nic> nics_;                 // per link
};

}  // namespace regatta::fabric::packet
