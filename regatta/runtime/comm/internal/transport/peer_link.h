// comm/internal/transport/peer_link.h: the link to one other rank, and its callbacks. A PeerLink
// moves packets in both directions without ever blocking; all its functions run on the progress
// thread. Forms: ShmLink inside a server, TcpLink and VerbsLink (RDMA) between servers; SelfLink is
// the link of a rank to itself.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "regatta/runtime/comm/internal/transport/wire_header.h"

namespace regatta::comm {

// A message on its way out. The owner keeps it and its bytes until LinkSink::sent().
struct OutMessage {
  MessageKey key;
  const std::byte* data = nullptr;
  std::size_t bytes = 0;
  std::uint32_t call = 0;   // of a collective: its fingerprint()
  std::size_t cut = 0;      // bytes that fragments were made of
  std::size_t written = 0;  // bytes that left this process
  int connections = 0;      // that carry its fragments; 0: all
};

// Called by links; `peer` is a rank of the world.
class LinkSink {
 public:
  LinkSink() = default;
  LinkSink(const LinkSink&) = delete;
  LinkSink& operator=(const LinkSink&) = delete;
  virtual ~LinkSink() = default;

  // The destination of the payload of a data fragment; null: the link keeps it until arrived().
  virtual std::byte* place(int peer, const PacketHeader& header) = 0;
  // A whole packet has arrived; the payload is valid during the call only.
  virtual void arrived(int peer, const PacketHeader& header, const std::byte* payload) = 0;
  virtual void sent(int peer, OutMessage& message, std::size_t bytes) = 0;
  // The link is broken, for the `reason` ("connection lost"); after a goodbye: closed in order.
  virtual void lost(int peer, std::string_view reason) = 0;
};

class PeerLink {
 public:
  PeerLink() = default;
  PeerLink(const PeerLink&) = delete;
  PeerLink& operator=(const PeerLink&) = delete;
  virtual ~PeerLink() = default;

  // The descriptors for epoll; a slot of on_event() is an index of them.
  virtual std::vector<int> fds() const = 0;
  // Queues a packet without data; it overtakes queued data messages. `text`: its payload or "".
  virtual void post_control(const PacketHeader& header, std::string_view text) = 0;
  // Queues the kGrant `header`. `place`: the destination of the whole message, so that the peer may
  // write it there itself; null: LinkSink::place() has the destination of each fragment.
  virtual void post_grant(const PacketHeader& header, std::byte* /*place*/) {
    post_control(header, {});
  }
  // Queues a message; large ones may overtake each other, `message` stays with the owner.
  virtual void post_message(OutMessage& message) = 0;
  // Moves what can be moved now; true when something moved.
  virtual bool progress() = 0;
  // Before the thread sleeps: true when progress() has work after all, else the peer will wake it.
  virtual bool arm() { return false; }
  virtual void disarm() {}
  // The descriptor given to epoll for `slot` has `events`.
  virtual void on_event(int slot, std::uint32_t events) = 0;
  // Forgets all messages and accesses no memory of their owners any more; control packets continue.
  virtual void abandon() = 0;
  // Messages wait because the network is full.
  virtual bool is_backlogged() const { return false; }
  // Nothing is queued and all sent bytes have left this machine.
  virtual bool is_flushed() = 0;
  // After the last packet: signals to the peer that no packet follows.
  virtual void shut_down() = 0;
};

}  // namespace regatta::comm
