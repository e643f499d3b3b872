// fabric/internal/packet/senders.h: the connections of each NIC and the messages that they still
// have to send.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "regatta/network/fabric/internal/packet/fifo_queue.h"
#include "regatta/network/fabric/internal/packet/packet.h"
#include "regatta/network/fabric/internal/packet/recurrence_detector.h"
#include "regatta/network/fabric/internal/packet/steady_state_detector.h"
#include "regatta/network/fabric/packet_simulation.h"

namespace regatta::fabric::packet {

class Senders {
 public:
  Senders(const PacketNetwork& network, std::size_t flows, std::uint32_t connections,
          const PacketOptions& options)
      : network_(network),
        mtu_(static_cast<std::uint32_t>(options.mtu.value)),
        coarse_(options.coarse),
        header_(static_cast<std::uint64_t>(options.header.value)),
        per_pair_(connections),
        by_turns_(options.load_balancing == LoadBalancing::kConnections),
        control_(options.rate_control),
        connections_(network.path_of.size()),
        following_(flows * connections, kNone),
        nics_(network.links.size()) {
    for (std::uint32_t i = 0; control_ && i < connections_.size(); ++i) {
      const bool is_inside = network.path_of[i] == kNone;
      rates_.emplace_back(is_inside ? 1 : network.links[first_link(i)].bytes_per_picosecond());
    }
  }

  // The share that connection `i` of a pair sends of a message of so many bytes.
  std::uint64_t part(std::uint64_t bytes, std::uint32_t i) const {
    if (by_turns_) return i == 0 ? bytes : 0;
    return bytes / per_pair_ + (i < bytes % per_pair_ ? 1 : 0);
  }

  // The payload of each packet of a part of a message, but for the last one.
  std::uint32_t payload(std::uint64_t part) const {
    if (!coarse_) return mtu_;
    const auto least = static_cast<std::uint64_t>(coarse_->least.value);
    const std::uint64_t even = (part + coarse_->per_message - 1) / coarse_->per_message;
    return static_cast<std::uint32_t>(std::clamp<std::uint64_t>(even, least, mtu_));
  }

  // Queues the connection's part of the flow behind its other messages. A part without bytes is a
  // packet without payload.
  void add(std::uint32_t connection, std::uint32_t flow, std::uint64_t bytes) {
    Connection& one = connections_[connection];
    const std::uint32_t message = flow * per_pair_ + connection % per_pair_;
    if (one.first == kNone) {
      one.first = one.last = message;
      begin(one, part(bytes, connection % per_pair_));
      if (!one.is_held) nics_[first_link(connection)].ready.push(connection);
      return;
    }
    following_[one.last] = message;
    one.last = message;
  }

  std::uint32_t first_link(std::uint32_t connection) const {
    return network_.paths[network_.path_of[connection]];
  }

  struct Next {
    Packet packet;
    bool is_last = false;  // of its part of the flow
  };
  // When the NIC may send its next packet, if not later; kNever: it has none. Puts the connection
  // whose turn it is first.
  Picoseconds next_at(std::uint32_t link, Picoseconds now) {
    Nic& nic = nics_[link];
    if (!nic.retransmits.empty()) return now;
    if (!control_) return nic.ready.empty() ? kNever : now;
    Picoseconds earliest = kNever;
    for (std::size_t i = 0; i < nic.ready.size(); ++i) {
      const std::uint32_t first = nic.ready.front();
      const Picoseconds at = connections_[first].may_send_at;
      if (at <= now) return now;
      earliest = std::min(earliest, at);
      nic.ready.push(nic.ready.pop());
    }
    return earliest;
  }
  // The next packet of the NIC. bytes_of(flow) is asked when a message begins.
  template <typename BytesOf>
  Next next(std::uint32_t link, Picoseconds now, BytesOf&& bytes_of) {
    if (!nics_[link].retransmits.empty()) return {nics_[link].retransmits.pop(), false};
    const std::uint32_t connection = nics_[link].ready.pop();
    Connection& one = connections_[connection];
    const std::uint64_t bytes = std::min<std::uint64_t>(one.left, one.payload);
    one.left -= bytes;
    const std::uint32_t message = one.first;
    const std::uint32_t sequence = one.sequence++;
    Next next{.packet = {.flow = message / per_pair_,
                         .connection = connection,
                         .sequence = sequence,
                         .next = path_of(connection) + 1,
                         .from = link,
                         .bytes = static_cast<std::uint16_t>(bytes),
                         .hops = 1,
                         .is_marked = false,
                         .is_retransmit = false},
              .is_last = one.left == 0};
    if (next.is_last) {
      one.first = following_[message];
      if (one.first != kNone)
        begin(one, part(bytes_of(one.first / per_pair_), connection % per_pair_));
    }
    if (one.first != kNone) nics_[link].ready.push(connection);
    if (control_) keep_rate(connection, bytes + header_, now);
    return next;
  }

  // All connections with something to send, without rate control, and nothing that was lost.
  std::vector<ActiveSend> sending() const {
    std::vector<ActiveSend> all;
    for (const Nic& nic : nics_)
      for (std::size_t i = 0; i < nic.ready.size(); ++i) {
        const Connection& one = connections_[nic.ready.at(i)];
        all.push_back({nic.ready.at(i), one.first / per_pair_, one.left});
      }
    return all;
  }
  // Adds the turns of the connections and retransmissions.
  void fingerprint(StateFingerprint& fingerprint) const {
    for (const Nic& nic : nics_) {
      fingerprint.add(nic.ready.size() << 1U | std::uint64_t{nic.is_busy});
      fingerprint.add(std::uint64_t{nic.ending != kNone});
      for (std::size_t i = 0; i < nic.retransmits.size(); ++i)
        fingerprint.add(nic.retransmits.at(i));
      for (std::size_t i = 0; i < nic.ready.size(); ++i)
        fingerprint.add(nic.ready.at(i));
    }
  }
  // Adds the messages and bytes still to be sent.
  void fingerprint_messages(StateFingerprint& fingerprint) const {
    for (const Nic& nic : nics_) {
      if (nic.ending != kNone) fingerprint.add_flow(nic.ending);
      for (std::size_t i = 0; i < nic.ready.size(); ++i) {
        const Connection& one = connections_[nic.ready.at(i)];
        fingerprint.add(one.left);
        for (std::uint32_t at = one.first; at != kNone; at = following_[at]) {
          fingerprint.add_flow(at / per_pair_);
          fingerprint.add(at % per_pair_);
        }
      }
    }
  }
  // Raises the flow numbers of all queued messages by `shift`.
  void repeat(std::uint32_t shift) {
    for (Nic& nic : nics_) {
      if (nic.ending != kNone) nic.ending += shift;
      for (std::size_t i = 0; i < nic.ready.size(); ++i)
        repeat(connections_[nic.ready.at(i)], shift * per_pair_);
    }
  }
  void fast_forward(std::uint32_t connection, std::uint64_t bytes) {
    connections_[connection].left -= bytes;
  }

  // Queues a lost packet to be sent again.
  void retransmit(Packet packet) {
    const std::uint32_t link = first_link(packet.connection);
    packet.next = path_of(packet.connection) + 1;
    packet.from = link;
    packet.hops = 1;
    packet.is_marked = false;
    packet.is_retransmit = true;
    nics_[link].retransmits.push(packet);
  }

  // Until release() the connection sends only retransmissions.
  void hold(std::uint32_t connection) {
    Connection& one = connections_[connection];
    if (one.is_held) return;
    one.is_held = true;
    FifoQueue<std::uint32_t>& ready = nics_[first_link(connection)].ready;
    for (std::size_t i = ready.size(); i > 0; --i)
      if (const std::uint32_t next = ready.pop(); next != connection) ready.push(next);
  }
  // Returns whether it was held.
  bool release(std::uint32_t connection) {
    Connection& one = connections_[connection];
    if (!one.is_held) return false;
    one.is_held = false;
    if (one.first != kNone) nics_[first_link(connection)].ready.push(connection);
    return true;
  }

  // A marked packet of the connection arrived: when the sender receives the CNP; none: the last CNP
  // is too recent.
  std::optional<Picoseconds> cnp_of(std::uint32_t connection, Picoseconds now) {
    if (!control_ || now < connections_[connection].next_cnp) return std::nullopt;
    connections_[connection].next_cnp =
        now + static_cast<Picoseconds>(control_->cnp_interval.value * 1e12);
    return now + network_.latency_of[connection];
  }
  void receive_cnp(std::uint32_t connection, Picoseconds now) {
    rates_[connection].on_cnp(*control_, now);
  }

  // The flow whose last packet the NIC is sending; kNone: none.
  std::uint32_t& ending(std::uint32_t link) { return nics_[link].ending; }
  bool& is_busy(std::uint32_t link) { return nics_[link].is_busy; }

 private:
  struct Connection {
    std::uint64_t left = 0;       // bytes of `first`
    std::uint32_t first = kNone;  // messages: flow * connections + connection
    std::uint32_t last = kNone;
    std::uint32_t sequence = 0;
    std::uint32_t turn = 0;     // of its pair's paths
    std::uint32_t payload = 0;  // of each packet of `first`, but for the last one
    bool is_held = false;
    Picoseconds may_send_at = 0;
    Picoseconds next_cnp = 0;
  };
  struct Nic {
    FifoQueue<std::uint32_t> ready;  // connections with something to send
    FifoQueue<Packet> retransmits;   // that were lost
    std::uint32_t ending = kNone;
    bool is_busy = false;
  };

  void begin(Connection& one, std::uint64_t bytes) const {
    one.left = bytes;
    one.payload = payload(bytes);
  }

  // The path of the next packet.
  std::uint32_t path_of(std::uint32_t connection) {
    if (!by_turns_) return network_.path_of[connection];
    return network_.path_of[connection + connections_[connection].turn++ % per_pair_];
  }

  void repeat(Connection& one, std::uint32_t shift) {
    std::vector<std::uint32_t> messages;
    for (std::uint32_t at = one.first; at != kNone; at = following_[at])
      messages.push_back(at + shift);
    for (std::size_t i = 0; i < messages.size(); ++i)
      following_[messages[i]] = i + 1 < messages.size() ? messages[i + 1] : kNone;
    one.first += shift;
    one.last += shift;
  }

  void keep_rate(std::uint32_t connection, std::uint64_t bytes, Picoseconds now) {
    RateControl& rate = rates_[connection];
    rate.advance(*control_, now);
    rate.sent(*control_, bytes);
    connections_[connection].may_send_at =
        now + static_cast<Picoseconds>(static_cast<double>(bytes) / rate.rate());
  }

  const PacketNetwork& network_;
  const std::uint32_t mtu_;
  const std::optional<CoarsePackets> coarse_;
  const std::uint64_t header_;
  const std::uint32_t per_pair_;  // connections
  const bool by_turns_;           // the first one sends over the paths of all
  const std::optional<Dcqcn> control_;
  std::vector<RateControl> rates_;  // per connection, with control
  std::vector<Connection> connections_;
  std::vector<std::uint32_t> following_;  // per message: the next one of its connection
  std::vector<Nic> nics_;                 // per link
};

}  // namespace regatta::fabric::packet
