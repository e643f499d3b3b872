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

MessageEnvelope envelope_of(const PacketHeader& header) {
  return {header.message_bytes, header.call};
}

// Stores `bytes` at `offset` of a received message, or combines them, as its step demands.
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

void post_request(PeerLink& link, const MessageTransfer& transfer) {
  link.post_control({.kind = PacketKind::kRequest,
                     .key = transfer.key(),
                     .message_bytes = transfer.bytes(),
                     .call = transfer.out.call},
                    {});
}

}  // namespace

MessageMatcher::MessageMatcher(const std::vector<std::unique_ptr<PeerLink>>& links,
                               const std::vector<std::string>& names)
    : links_(links), names_(names), peers_(names.size()) {}

void MessageMatcher::post_send(MessageTransfer& transfer) {
  Peer& peer = peer_of(transfer.peer);
  PeerLink& link = *at(links_, transfer.peer);
  transfer.is_active = true;
  if (const auto grant = peer.grants.find(transfer.key()); grant != peer.grants.end()) {
    const MessageEnvelope theirs = grant->second;
    peer.grants.erase(grant);
    if (!check_envelope(transfer, theirs)) return;
    transfer.is_granted = true;
    return link.post_message(transfer.out);
  }
  const bool fits = peer.on_credit + credit_weight(transfer.bytes()) <= kCreditBytes;
  if (transfer.bytes() <= kEagerBytes && fits) {
    peer.on_credit += credit_weight(transfer.bytes());
    return link.post_message(transfer.out);
  }
  peer.sends.emplace(transfer.key(), &transfer);
  // The receiver of a large message grants it unasked; see repeat_requests().
  if (transfer.bytes() <= kEagerBytes) post_request(link, transfer);
}

void MessageMatcher::post_receive(MessageTransfer& transfer) {
  Peer& peer = peer_of(transfer.peer);
  transfer.is_active = true;
  if (UnexpectedMessage* unexpected = peer.unexpected.find(transfer.key()); unexpected != nullptr) {
    if (!check_envelope(transfer, unexpected->envelope)) return;
    unexpected->receive = &transfer;
    if (unexpected->is_complete()) deliver_unexpected(transfer, *unexpected);
    return;
  }
  peer.receives.emplace(transfer.key(), &transfer);
  const auto request = peer.requests.find(transfer.key());
  if (request != peer.requests.end()) {
    const MessageEnvelope theirs = request->second;
    peer.requests.erase(request);
    if (check_envelope(transfer, theirs)) grant(transfer);
  } else if (transfer.bytes() > kEagerBytes) {
    grant(transfer);
  }
}

std::byte* MessageMatcher::place(int peer, const PacketHeader& header, Seconds now) {
  if (error_) return nullptr;
  const auto receive = peer_of(peer).receives.find(header.key);
  if (receive != peer_of(peer).receives.end()) {
    MessageTransfer& transfer = *receive->second;
    if (!check_envelope(transfer, envelope_of(header)) ||
        !expect_fragment(peer, header, transfer.expected))
      return nullptr;
    transfer.operation->record_progress(now);
    const Step& step = transfer.operation->schedule.steps()[transfer.step];
    return step.kind == StepKind::kReceive ? step.dst + header.offset : nullptr;
  }
  UnexpectedMessage* const unexpected = accept_unexpected(peer, header);
  if (unexpected == nullptr || !expect_fragment(peer, header, unexpected->expected)) return nullptr;
  return unexpected->memory.get() + header.offset;
}

// No fragment comes twice, so a message cannot end while a fragment is on its way to its place.
bool MessageMatcher::expect_fragment(int peer, const PacketHeader& header, std::size_t& expected) {
  expected += header.payload_bytes;
  if (expected <= header.message_bytes) return true;
  fail(peer, "sent part of a message twice");
  return false;
}

// Null: the peer broke the protocol.
UnexpectedMessage* MessageMatcher::accept_unexpected(int peer, const PacketHeader& header) {
  const auto accepted = peer_of(peer).unexpected.accept(header);
  if (accepted) return *accepted;
  fail(peer, accepted.error().message);
  return nullptr;
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
      std::size_t& on_credit = peer_of(peer).on_credit;
      on_credit -= std::min<std::size_t>(on_credit, header.message_bytes);
      return;
    }
    default:
      return;
  }
}

void MessageMatcher::arrived_data(int peer, const PacketHeader& header, const std::byte* payload,
                                  Seconds now) {
  const auto receive = peer_of(peer).receives.find(header.key);
  if (receive == peer_of(peer).receives.end()) return arrived_unexpected(peer, header, payload);
  MessageTransfer& transfer = *receive->second;
  if (!check_envelope(transfer, envelope_of(header))) return;
  if (transfer.received + header.payload_bytes > transfer.bytes())
    return fail(peer, "sent part of a message twice");
  if (!fits_elements(peer, header, transfer)) return;
  const Step& step = transfer.operation->schedule.steps()[transfer.step];
  // A payload that place() sent to its destination is there already.
  if (header.payload_bytes > 0 && payload != step.dst + header.offset)
    deliver(transfer, header.offset, payload, header.payload_bytes);
  transfer.operation->record_progress(now);
  transfer.received += header.payload_bytes;
  if (transfer.received < transfer.bytes()) return;
  peer_of(peer).receives.erase(receive);
  end_receive(transfer);
}

void MessageMatcher::arrived_unexpected(int peer, const PacketHeader& header,
                                        const std::byte* payload) {
  UnexpectedMessage* const unexpected = accept_unexpected(peer, header);
  if (unexpected == nullptr) return;
  if (unexpected->received + header.payload_bytes > unexpected->envelope.bytes)
    return fail(peer, "sent part of a message twice");
  std::byte* const to = unexpected->memory.get() + header.offset;
  if (header.payload_bytes > 0 && payload != to) std::memcpy(to, payload, header.payload_bytes);
  unexpected->received += header.payload_bytes;
  if (unexpected->is_complete() && unexpected->receive != nullptr)
    deliver_unexpected(*unexpected->receive, *unexpected);
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

void MessageMatcher::deliver_unexpected(MessageTransfer& transfer,
                                        const UnexpectedMessage& unexpected) {
  if (unexpected.envelope.bytes > 0)
    deliver(transfer, 0, unexpected.memory.get(), unexpected.envelope.bytes);
  peer_of(transfer.peer).unexpected.erase(transfer.key());
  end_receive(transfer);
}

void MessageMatcher::end_receive(MessageTransfer& transfer) {
  if (!transfer.is_granted) consume(transfer.peer, credit_weight(transfer.bytes()));
  transfer.is_active = false;
  ended_.push_back(&transfer);
}

void MessageMatcher::consume(int peer, std::size_t bytes) {
  Peer& state = peer_of(peer);
  state.consumed += bytes;
  if (state.consumed < kCreditBytes / 4) return;
  at(links_, peer)
      ->post_control(
          {.kind = PacketKind::kCredit, .message_bytes = std::exchange(state.consumed, 0)}, {});
}

void MessageMatcher::arrived_request(int peer, const PacketHeader& header) {
  Peer& state = peer_of(peer);
  const auto receive = state.receives.find(header.key);
  if (receive == state.receives.end()) {
    state.requests.emplace(header.key, envelope_of(header));
    return;
  }
  MessageTransfer& transfer = *receive->second;
  if (!check_envelope(transfer, envelope_of(header))) return;
  // A large one was granted when it was asked for: the two crossed.
  if (!transfer.is_granted) grant(transfer);
}

void MessageMatcher::arrived_grant(int peer, const PacketHeader& header) {
  Peer& state = peer_of(peer);
  const auto send = state.sends.find(header.key);
  if (send == state.sends.end()) {
    state.grants.emplace(header.key, envelope_of(header));
    return;
  }
  MessageTransfer& transfer = *send->second;
  state.sends.erase(send);
  if (!check_envelope(transfer, envelope_of(header))) return;
  transfer.is_granted = true;
  at(links_, peer)->post_message(transfer.out);
}

void MessageMatcher::grant(MessageTransfer& transfer) {
  transfer.is_granted = true;
  const Step& step = transfer.operation->schedule.steps()[transfer.step];
  at(links_, transfer.peer)
      ->post_grant({.kind = PacketKind::kGrant,
                    .key = transfer.key(),
                    .message_bytes = transfer.bytes(),
                    .call = transfer.out.call},
                   step.kind == StepKind::kReceive ? step.dst : nullptr);
}

void MessageMatcher::sent(OutMessage& message, Seconds now) {
  MessageTransfer& transfer = transfer_of(message);
  transfer.operation->record_progress(now);
  if (message.written < message.bytes) return;
  transfer.is_active = false;
  ended_.push_back(&transfer);
}

// False: the peer made another call, or its message has another size.
bool MessageMatcher::check_envelope(const MessageTransfer& transfer,
                                    const MessageEnvelope& theirs) {
  if (transfer.out.call != theirs.call) {
    if (contradicted_ == nullptr) contradicted_ = transfer.operation;
    return false;
  }
  if (transfer.bytes() == theirs.bytes) return true;
  const CommunicatorState& group = *transfer.operation->group;
  const int own = at(group.members, group.rank);
  fail(transfer.peer, "has a message of " + std::to_string(theirs.bytes) + " bytes where " +
                          at(names_, own) + " has " + std::to_string(transfer.bytes()) + " in " +
                          transfer.operation->name +
                          ": call it with the same count and type on both");
  return false;
}

void MessageMatcher::fail(int peer, const std::string& breach) {
  if (error_) return;
  error_ = Error{Code::kInvalidInput, at(names_, peer) + " " + breach};
}

void MessageMatcher::repeat_requests() {
  for (const Peer& peer : peers_)
    for (const auto& [key, transfer] : peer.sends)
      if (transfer->bytes() > kEagerBytes && ++transfer->reminders == 2)
        post_request(*at(links_, transfer->peer), *transfer);
}

std::vector<MessageTransfer*> MessageMatcher::consume_ended() {
  return std::exchange(ended_, {});
}

void MessageMatcher::clear() {
  for (Peer& peer : peers_)
    peer = {};
  ended_.clear();
  contradicted_ = nullptr;
}

}  // namespace regatta::comm
