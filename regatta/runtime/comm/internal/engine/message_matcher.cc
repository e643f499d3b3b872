#include "regatta/runtime/comm/internal/engine/message_matcher.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "regatta/model/collective/reduce_kernels.h"
#include "regatta/runtime/comm/internal/collective_names.h"

namespace regatta::comm {
namespace {

// What a message weighs on the credit: empty ones take memory as well.
constexpr std::size_t weight(std::size_t bytes) {
  return bytes + 64;
}

// Puts `bytes` at `offset` of a received message where its step wants them.
void deliver(MessageTransfer& transfer, std::size_t offset, const std::byte* bytes,
             std::size_t count) {
  const CollectiveSchedule& schedule = transfer.operation->schedule;
  const Step& step = schedule.steps()[transfer.step];
  if (step.kind != StepKind::kReceiveReduce) {
    std::memcpy(step.dst + offset, bytes, count);
    return;
  }
  combine(schedule.reduction, step.dst + offset, step.src + offset, bytes, count);
  if (step.finishes) finish(schedule.reduction, step.dst + offset, count);
}

MessageTransfer& transfer_of(OutMessage& message) {
  // OutMessage is a member of MessageTransfer.
  return *reinterpret_cast<MessageTransfer*>(reinterpret_cast<std::byte*>(&message) -
                                             offsetof(MessageTransfer, out));
}

}  // namespace

MessageMatcher::MessageMatcher(const std::vector<std::unique_ptr<PeerLink>>& links,
                               const std::vector<std::string>& names)
    : links_(links), names_(names), peers_(names.size()) {}

void MessageMatcher::post_send(MessageTransfer& transfer) {
  Peer& peer = at(transfer.peer);
  PeerLink& link = *links_[static_cast<std::size_t>(transfer.peer)];
  transfer.is_active = true;
  if (const auto grant = peer.grants.find(transfer.key()); grant != peer.grants.end()) {
    const Envelope theirs = grant->second;
    peer.grants.erase(grant);
    if (!check(transfer.peer, transfer, theirs)) return;
    transfer.is_granted = true;
    return link.post_message(transfer.out);
  }
  const bool fits = peer.on_credit + weight(transfer.bytes()) <= kCreditBytes;
  if (transfer.bytes() <= kEagerBytes && fits) {
    peer.on_credit += weight(transfer.bytes());
    return link.post_message(transfer.out);
  }
  peer.sends.emplace(transfer.key(), &transfer);
  // The receiver of a large message grants it unasked; see repeat_requests().
  if (transfer.bytes() <= kEagerBytes) post_control(PacketKind::kRequest, transfer);
}

void MessageMatcher::post_receive(MessageTransfer& transfer) {
  Peer& peer = at(transfer.peer);
  transfer.is_active = true;
  if (const auto unexpected = peer.unexpected.find(transfer.key());
      unexpected != peer.unexpected.end()) {
    if (!check(transfer.peer, transfer, unexpected->second.envelope)) return;
    unexpected->second.wanted_by = &transfer;
    if (unexpected->second.received < unexpected->second.envelope.bytes) return;
    take_unexpected(transfer, unexpected->second);
    peer.unexpected.erase(unexpected);
    return;
  }
  peer.receives.emplace(transfer.key(), &transfer);
  const auto request = peer.requests.find(transfer.key());
  if (request != peer.requests.end()) {
    const Envelope theirs = request->second;
    peer.requests.erase(request);
    if (check(transfer.peer, transfer, theirs)) grant(transfer);
  } else if (transfer.bytes() > kEagerBytes) {
    grant(transfer);
  }
}

std::byte* MessageMatcher::place(int peer, const PacketHeader& header, Seconds now) {
  if (error_) return nullptr;
  const auto receive = at(peer).receives.find(header.key);
  if (receive != at(peer).receives.end()) {
    MessageTransfer& transfer = *receive->second;
    if (!check(peer, transfer, envelope_of(header)) ||
        !expect_fragment(peer, header, transfer.expected))
      return nullptr;
    transfer.operation->note_movement(now);
    const Step& step = transfer.operation->schedule.steps()[transfer.step];
    return step.kind == StepKind::kReceive ? step.dst + header.offset : nullptr;
  }
  UnexpectedMessage* const unexpected = unexpected_for(peer, header);
  if (unexpected == nullptr || !expect_fragment(peer, header, unexpected->expected)) return nullptr;
  return unexpected->memory.get() + header.offset;
}

// No fragment comes twice: while one is on its way to its place, the message cannot end and the
// place stays.
bool MessageMatcher::expect_fragment(int peer, const PacketHeader& header, std::size_t& expected) {
  expected += header.payload_bytes;
  if (expected <= header.message_bytes) return true;
  fail(peer, "sent part of a message twice");
  return false;
}

// Null: a breach of the protocol.
MessageMatcher::UnexpectedMessage* MessageMatcher::unexpected_for(int peer,
                                                                  const PacketHeader& header) {
  Peer& state = at(peer);
  const auto found = state.unexpected.find(header.key);
  if (found != state.unexpected.end()) {
    if (found->second.envelope.bytes == header.message_bytes) return &found->second;
    fail(peer, "sent two messages by one name");
    return nullptr;
  }
  if (header.message_bytes > kEagerBytes) {
    fail(peer, "sent a large message that was not granted");
    return nullptr;
  }
  state.unexpected_weight += weight(header.message_bytes);
  if (state.unexpected_weight > kCreditBytes) {
    fail(peer, "sent more than its credit");
    return nullptr;
  }
  UnexpectedMessage& unexpected = state.unexpected[header.key];
  unexpected.memory = std::make_unique<std::byte[]>(header.message_bytes);
  unexpected.envelope = envelope_of(header);
  return &unexpected;
}

void MessageMatcher::arrived(int peer, const PacketHeader& header, const std::byte* payload,
                             Seconds now) {
  if (error_) return;
  switch (header.kind) {
    case PacketKind::kData:
      return arrived_data(peer, header, payload, now);
    case PacketKind::kRequest:
      return arrived_request(peer, header);
    case PacketKind::kGrant:
      return arrived_grant(peer, header);
    case PacketKind::kCredit: {
      std::size_t& on_credit = at(peer).on_credit;
      on_credit -= std::min<std::size_t>(on_credit, header.message_bytes);
      return;
    }
    default:
      return;
  }
}

void MessageMatcher::arrived_data(int peer, const PacketHeader& header, const std::byte* payload,
                                  Seconds now) {
  const auto receive = at(peer).receives.find(header.key);
  if (receive == at(peer).receives.end()) return arrived_unexpected(peer, header, payload);
  MessageTransfer& transfer = *receive->second;
  if (!check(peer, transfer, envelope_of(header))) return;
  if (transfer.received + header.payload_bytes > transfer.bytes())
    return fail(peer, "sent part of a message twice");
  if (!fits_elements(peer, header, transfer)) return;
  const Step& step = transfer.operation->schedule.steps()[transfer.step];
  // A payload that place() sent to its destination is there already.
  if (header.payload_bytes > 0 && payload != step.dst + header.offset)
    deliver(transfer, header.offset, payload, header.payload_bytes);
  transfer.operation->note_movement(now);
  transfer.received += header.payload_bytes;
  if (transfer.received < transfer.bytes()) return;
  at(peer).receives.erase(receive);
  end_receive(transfer);
}

void MessageMatcher::arrived_unexpected(int peer, const PacketHeader& header,
                                        const std::byte* payload) {
  UnexpectedMessage* const unexpected = unexpected_for(peer, header);
  if (unexpected == nullptr) return;
  if (unexpected->received + header.payload_bytes > unexpected->envelope.bytes)
    return fail(peer, "sent part of a message twice");
  std::byte* const to = unexpected->memory.get() + header.offset;
  if (header.payload_bytes > 0 && payload != to) std::memcpy(to, payload, header.payload_bytes);
  unexpected->received += header.payload_bytes;
  if (unexpected->received < unexpected->envelope.bytes || unexpected->wanted_by == nullptr) return;
  take_unexpected(*unexpected->wanted_by, *unexpected);
  at(peer).unexpected.erase(header.key);
}

bool MessageMatcher::fits_elements(int peer, const PacketHeader& header,
                                   const MessageTransfer& transfer) {
  const CollectiveSchedule& schedule = transfer.operation->schedule;
  if (schedule.steps()[transfer.step].kind != StepKind::kReceiveReduce) return true;
  const std::size_t element = size_of(schedule.reduction.type);
  if (header.offset % element == 0 && header.payload_bytes % element == 0) return true;
  fail(peer, "sent a fragment that cuts an element");
  return false;
}

void MessageMatcher::take_unexpected(MessageTransfer& transfer,
                                     const UnexpectedMessage& unexpected) {
  at(transfer.peer).unexpected_weight -= weight(unexpected.envelope.bytes);
  if (unexpected.envelope.bytes > 0)
    deliver(transfer, 0, unexpected.memory.get(), unexpected.envelope.bytes);
  end_receive(transfer);
}

void MessageMatcher::end_receive(MessageTransfer& transfer) {
  if (!transfer.is_granted) consume(transfer.peer, weight(transfer.bytes()));
  transfer.is_active = false;
  ended_.push_back(&transfer);
}

void MessageMatcher::consume(int peer, std::size_t bytes) {
  Peer& state = at(peer);
  state.consumed += bytes;
  if (state.consumed < kCreditBytes / 4) return;
  links_[static_cast<std::size_t>(peer)]->post_control(
      {.kind = PacketKind::kCredit, .message_bytes = std::exchange(state.consumed, 0)}, {});
}

void MessageMatcher::arrived_request(int peer, const PacketHeader& header) {
  Peer& state = at(peer);
  const auto receive = state.receives.find(header.key);
  if (receive == state.receives.end()) {
    state.requests.emplace(header.key, envelope_of(header));
    return;
  }
  MessageTransfer& transfer = *receive->second;
  if (!check(peer, transfer, envelope_of(header))) return;
  // A large one was granted when it was asked for: the two crossed.
  if (!transfer.is_granted) grant(transfer);
}

void MessageMatcher::arrived_grant(int peer, const PacketHeader& header) {
  Peer& state = at(peer);
  const auto send = state.sends.find(header.key);
  if (send == state.sends.end()) {
    state.grants.emplace(header.key, envelope_of(header));
    return;
  }
  MessageTransfer& transfer = *send->second;
  state.sends.erase(send);
  if (!check(peer, transfer, envelope_of(header))) return;
  transfer.is_granted = true;
  links_[static_cast<std::size_t>(peer)]->post_message(transfer.out);
}

void MessageMatcher::grant(MessageTransfer& transfer) {
  transfer.is_granted = true;
  const Step& step = transfer.operation->schedule.steps()[transfer.step];
  links_[static_cast<std::size_t>(transfer.peer)]->post_grant(
      {.kind = PacketKind::kGrant,
       .key = transfer.key(),
       .message_bytes = transfer.bytes(),
       .call = transfer.out.call},
      step.kind == StepKind::kReceive ? step.dst : nullptr);
}

void MessageMatcher::sent(OutMessage& message, Seconds now) {
  MessageTransfer& transfer = transfer_of(message);
  transfer.operation->note_movement(now);
  if (message.written < message.bytes) return;
  transfer.is_active = false;
  ended_.push_back(&transfer);
}

bool MessageMatcher::check(int peer, const MessageTransfer& transfer, const Envelope& theirs) {
  if (transfer.out.call != theirs.call) {
    if (contradicted_ == nullptr) contradicted_ = transfer.operation;
    return false;
  }
  if (transfer.bytes() == theirs.bytes) return true;
  const CommunicatorState& group = *transfer.operation->group;
  const int own = group.members[static_cast<std::size_t>(group.rank)];
  fail(peer, "has a message of " + std::to_string(theirs.bytes) + " bytes where " +
                 names_[static_cast<std::size_t>(own)] + " has " +
                 std::to_string(transfer.bytes()) + " in " + transfer.operation->name +
                 ": call it with the same count and type on both");
  return false;
}

void MessageMatcher::post_control(PacketKind kind, const MessageTransfer& transfer) {
  links_[static_cast<std::size_t>(transfer.peer)]->post_control({.kind = kind,
                                                                 .key = transfer.key(),
                                                                 .message_bytes = transfer.bytes(),
                                                                 .call = transfer.out.call},
                                                                {});
}

void MessageMatcher::fail(int peer, const std::string& what) {
  if (error_) return;
  error_ = Error{Code::kInvalidInput, names_[static_cast<std::size_t>(peer)] + " " + what};
}

void MessageMatcher::repeat_requests() {
  for (const Peer& peer : peers_)
    for (const auto& [key, transfer] : peer.sends)
      if (transfer->bytes() > kEagerBytes && ++transfer->reminders == 2)
        post_control(PacketKind::kRequest, *transfer);
}

std::vector<MessageTransfer*> MessageMatcher::take_ended() {
  return std::exchange(ended_, {});
}

void MessageMatcher::clear() {
  for (Peer& peer : peers_)
    peer = {};
  ended_.clear();
  contradicted_ = nullptr;
}

}  // namespace regatta::comm
