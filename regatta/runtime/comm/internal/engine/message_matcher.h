// comm/internal/engine/message_matcher.h: brings together what ranks send and what they wait for,
// by MessageKey. Small messages go out at once, on credit, and may wait at the receiver; larger
// ones, and small ones when the credit is used up, wait until the receiver grants them, so the
// memory for messages that nobody asked for yet is bounded (kCreditBytes a peer). A receiver grants
// a large message as soon as it is asked for, which is mostly before the sender is ready: then no
// time is lost.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "regatta/base/core/result.h"
#include "regatta/runtime/comm/internal/engine/operation.h"
#include "regatta/runtime/comm/internal/transport/peer_link.h"

namespace regatta::comm {

inline constexpr std::size_t kEagerBytes = std::size_t{64} << 10;
inline constexpr std::size_t kCreditBytes = std::size_t{2} << 20;

// Used by the progress thread alone.
class MessageMatcher {
 public:
  // links: by world rank; they and the names outlive this object.
  MessageMatcher(const std::vector<std::unique_ptr<PeerLink>>& links,
                 const std::vector<std::string>& names);

  void post_send(MessageTransfer& transfer);
  void post_receive(MessageTransfer& transfer);

  // From LinkSink; `now` marks progress.
  std::byte* place(int peer, const PacketHeader& header, Seconds now);
  void arrived(int peer, const PacketHeader& header, const std::byte* payload, Seconds now);
  void sent(OutMessage& message, Seconds now);

  // Asks for grants that did not come since the last call, so that a receiver that expects another
  // size notices.
  void repeat_requests();

  // Transfers that ended since the last call.
  std::vector<MessageTransfer*> take_ended();
  // The first breach of the protocol, or of the rule that the sizes of send and receive agree.
  const std::optional<Error>& error() const { return error_; }
  // A collective in which a peer showed another call than this rank's; what it sent is dropped, so
  // the operation cannot end.
  const Operation* contradicted() const { return contradicted_; }
  // Forgets everything: the operations are gone.
  void clear();

 private:
  // What a peer says about a message.
  struct Envelope {
    std::uint64_t bytes = 0;
    std::uint32_t call = 0;
  };
  // A message that came before it was asked for.
  struct UnexpectedMessage {
    std::unique_ptr<std::byte[]> memory;
    Envelope envelope;
    std::size_t expected = 0;  // as in MessageTransfer
    std::size_t received = 0;
    MessageTransfer* wanted_by = nullptr;  // asked for while it still arrives
  };
  struct Peer {
    std::unordered_map<MessageKey, MessageTransfer*> receives;
    std::unordered_map<MessageKey, UnexpectedMessage> unexpected;
    std::unordered_map<MessageKey, Envelope> requests;       // of senders, not yet granted
    std::unordered_map<MessageKey, MessageTransfer*> sends;  // without grant
    std::unordered_map<MessageKey, Envelope> grants;         // that came before the send
    std::size_t on_credit = 0;                               // bytes sent and not yet consumed
    std::size_t consumed = 0;                                // by us, not yet reported
    std::size_t unexpected_weight = 0;                       // of all that is in `unexpected`
  };

  void arrived_data(int peer, const PacketHeader& header, const std::byte* payload, Seconds now);
  void arrived_request(int peer, const PacketHeader& header);
  void arrived_grant(int peer, const PacketHeader& header);
  void arrived_unexpected(int peer, const PacketHeader& header, const std::byte* payload);
  UnexpectedMessage* unexpected_for(int peer, const PacketHeader& header);
  bool expect_fragment(int peer, const PacketHeader& header, std::size_t& expected);
  bool fits_elements(int peer, const PacketHeader& header, const MessageTransfer& transfer);
  void grant(MessageTransfer& transfer);
  void end_receive(MessageTransfer& transfer);
  void consume(int peer, std::size_t bytes);
  void take_unexpected(MessageTransfer& transfer, const UnexpectedMessage& unexpected);
  static Envelope envelope_of(const PacketHeader& header) {
    return {header.message_bytes, header.call};
  }
  bool check(int peer, const MessageTransfer& transfer, const Envelope& theirs);
  void post_control(PacketKind kind, const MessageTransfer& transfer);
  void fail(int peer, const std::string& what);
  Peer& at(int peer) { return peers_[static_cast<std::size_t>(peer)]; }

  const std::vector<std::unique_ptr<PeerLink>>& links_;
  const std::vector<std::string>& names_;
  std::vector<Peer> peers_;
  std::vector<MessageTransfer*> ended_;
  std::optional<Error> error_;
  const Operation* contradicted_ = nullptr;
};

}  // namespace regatta::comm
