#include "regatta/runtime/comm/internal/engine/unexpected_messages.h"

namespace regatta::comm {

Result<UnexpectedMessage*> UnexpectedMessages::accept(const PacketHeader& header) {
  if (UnexpectedMessage* known = find(header.key); known != nullptr) {
    if (known->envelope.bytes == header.message_bytes) return known;
    return Error{Code::kInvalidInput, "sent two messages by one name"};
  }
  if (header.message_bytes > kEagerBytes)
    return Error{Code::kInvalidInput, "sent a large message that was not granted"};
  weight_ += credit_weight(header.message_bytes);
  if (weight_ > kCreditBytes) return Error{Code::kInvalidInput, "sent more than its credit"};
  UnexpectedMessage& made = messages_[header.key];
  made.memory = std::make_unique<std::byte[]>(header.message_bytes);
  made.envelope = {header.message_bytes, header.call};
  return &made;
}

UnexpectedMessage* UnexpectedMessages::find(const MessageKey& key) {
  const auto found = messages_.find(key);
  return found == messages_.end() ? nullptr : &found->second;
}

void UnexpectedMessages::erase(const MessageKey& key) {
  const auto found = messages_.find(key);
  if (found == messages_.end()) return;
  weight_ -= credit_weight(found->second.envelope.bytes);
  messages_.erase(found);
}

}  // namespace regatta::comm
