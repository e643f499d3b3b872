// comm/internal/engine/message_matcher.h: pairs the messages that ranks send with the receives that
// wait for them, by MessageKey. Small messages go out at once, on credit, and may wait at the
// receiver. Larger ones, and small ones without credit, wait until the receiver grants them, which
// bounds the memory of messages without a receive (kCreditBytes a peer). A receiver grants a large
// message when its receive is posted, mostly before the sender is ready: then no time is lost.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "regatta/base/core/ids.h"
#include "regatta/base/core/result.h"
#include "regatta/runtime/comm/internal/engine/operation.h"
#include "regatta/runtime/comm/internal/engine/unexpected_messages.h"
#include "regatta/runtime/comm/internal/transport/peer_link.h"

namespace regatta::comm {

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

  // Requests the grants that did not come since the last call, so that a receiver that expects
  // another size notices.
  void repeat_requests();

  // The transfers that ended since the last call.
  std::vector<MessageTransfer*> consume_ended();
  // The first breach of the protocol, or of the rule that the sizes of send and receive agree.
  const std::optional<Error>& error() const { return error_; }
  // A collective in which a peer made another call than this rank; the messages of the peer are
  // dropped, so the operation cannot end.
  const Operation* contradicted() const { return contradicted_; }
  // Forgets everything: the operations are gone.
  void clear();

 private:
  struct Peer {
    std::unordered_map<MessageKey, MessageTransfer*> receives;
    UnexpectedMessages unexpected;
    std::unordered_map<MessageKey, MessageEnvelope> requests;  // of senders, not yet granted
    std::unordered_map<MessageKey, MessageTransfer*> sends;    // without grant
    std::unordered_map<MessageKey, MessageEnvelope> grants;    // that came before the send
    std::size_t on_credit = 0;                                 // bytes sent and not yet consumed
    std::size_t consumed = 0;  // bytes of the peer, not yet reported to it
  };

  void arrived_data(int peer, const PacketHeader& header, const std::byte* payload, Seconds now);
  void arrived_request(int peer, const PacketHeader& header);
  void arrived_grant(int peer, const PacketHeader& header);
  void arrived_unexpected(int peer, const PacketHeader& header, const std::byte* payload);
  UnexpectedMessage* accept_unexpected(int peer, const PacketHeader& header);
  bool expect_fragment(int peer, const PacketHeader& header, std::size_t& expected);
  bool fits_elements(int peer, const PacketHeader& header, const MessageTransfer& transfer);
  void grant(MessageTransfer& transfer);
  void end_receive(MessageTransfer& transfer);
  void consume(int peer, std::size_t bytes);
  void deliver_unexpected(MessageTransfer& transfer, const UnexpectedMessage& unexpected);
  bool check_envelope(const MessageTransfer& transfer, const MessageEnvelope& theirs);
  void fail(int peer, const std::string& breach);
  Peer& peer_of(int rank) { return at(peers_, rank); }

  const std::vector<std::unique_ptr<PeerLink>>& links_;
  const std::vector<std::string>& names_;
  std::vector<Peer> peers_;
  std::vector<MessageTransfer*> ended_;
  std::optional<Error> error_;
  const Operation* contradicted_ = nullptr;
};

}  // namespace regatta::comm
