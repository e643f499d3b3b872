// comm/internal/engine/unexpected_messages.h: the messages of one peer that arrived before this
// rank posted their receives. Only small messages may: larger ones wait for a grant. The credit of
// the peer bounds their memory. Progress thread only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <unordered_map>

#include "regatta/base/core/result.h"
#include "regatta/runtime/comm/internal/engine/operation.h"
#include "regatta/runtime/comm/internal/transport/wire_header.h"

namespace regatta::comm {

inline constexpr std::size_t kEagerBytes = std::size_t{64} << 10;
inline constexpr std::size_t kCreditBytes = std::size_t{2} << 20;

// The share of the credit that a message uses: empty ones take memory as well.
constexpr std::size_t credit_weight(std::size_t bytes) {
  return bytes + 64;
}

// The size and the call of a message, as its packets state them.
struct MessageEnvelope {
  std::uint64_t bytes = 0;
  std::uint32_t call = 0;  // PacketHeader::call
};

struct UnexpectedMessage {
  std::unique_ptr<std::byte[]> memory;
  MessageEnvelope envelope;
  std::size_t expected = 0;  // as in MessageTransfer
  std::size_t received = 0;
  MessageTransfer* receive = nullptr;  // posted while the message still arrives

  bool is_complete() const { return received == envelope.bytes; }
};

class UnexpectedMessages {
 public:
  // The message that this fragment belongs to; the first fragment makes it. kInvalidInput, with the
  // rest of a sentence about the peer, where the peer breaks the protocol.
  Result<UnexpectedMessage*> accept(const PacketHeader& header);
  // Null: none has that key.
  UnexpectedMessage* find(const MessageKey& key);
  // The message was delivered.
  void erase(const MessageKey& key);

 private:
  std::unordered_map<MessageKey, UnexpectedMessage> messages_;
  std::size_t weight_ = 0;  // of all messages
};

}  // namespace regatta::comm
