#include "regatta/runtime/comm/internal/engine/mailbox.h"

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
void deliver(Transfer& transfer, std::size_t offset, const std::byte* bytes, std::size_t count) {
  const Schedule& schedule = transfer.operation->schedule;
  const Step& step = schedule.steps()[transfer.step];
  if (step.kind != StepKind::kReceiveReduce) {
    std::memcpy(step.dst + offset, bytes, count);
    return;
  }
  combine(schedule.reduction, step.dst + offset, step.src + offset, bytes, count);
  if (step.finishes) finish(schedule.reduction, step.dst + offset, count);
}

Transfer& transfer_of(OutMessage& message) {
  // OutMessage is a member of Transfer.
  return *reinterpret_cast<Transfer*>(reinterpret_cast<std::byte*>(&message) -
                                      offsetof(Transfer, out));
}

}  // namespace

Mailbox::Mailbox(const std::vector<std::unique_ptr<Link>>& links,
                 const std::vector<std::string>& names)
    : links_(links), names_(names), peers_(names.size()) {}

void Mailbox::post_send(Transfer& transfer) {
  Peer& peer = at(transfer.peer);
  Link& link = *links_[static_cast<std::size_t>(transfer.peer)];
  transfer.is_active = true;
  if (const auto grant = peer.grants.find(transfer.key()); grant != peer.grants.end()) {
    const Claim theirs = grant->second;
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
  // The receiver of a large message grants it unasked; see remind().
  if (transfer.bytes() <= kEagerBytes) post_control(PacketKind::kRequest, transfer);
}

void Mailbox::post_receive(Transfer& transfer) {
  Peer& peer = at(transfer.peer);
  transfer.is_active = true;
  if (const auto early = peer.early.find(transfer.key()); early != peer.early.end()) {
    if (!check(transfer.peer, transfer, early->second.claim)) return;
    early->second.wanted_by = &transfer;
    if (early->second.received < early->second.claim.bytes) return;
    take_early(transfer, early->second);
    peer.early.erase(early);
    return;
  }
  peer.receives.emplace(transfer.key(), &transfer);
  const auto request = peer.requests.find(transfer.key());
  if (request != peer.requests.end()) {
    const Claim theirs = request->second;
    peer.requests.erase(request);
    if (check(transfer.peer, transfer, theirs)) grant(transfer);
  } else if (transfer.bytes() > kEagerBytes) {
    grant(transfer);
  }
}

std::byte* Mailbox::place(int peer, const PacketHeader& header, Seconds now) {
  if (error_) return nullptr;
  const auto receive = at(peer).receives.find(header.key);
  if (receive != at(peer).receives.end()) {
    Transfer& transfer = *receive->second;
    if (!check(peer, transfer, claim_of(header)) ||
        !expect_fragment(peer, header, transfer.expected))
      return nullptr;
    transfer.operation->note_movement(now);
    const Step& step = transfer.operation->schedule.steps()[transfer.step];
    return step.kind == StepKind::kReceive ? step.dst + header.offset : nullptr;
  }
  Early* const early = early_for(peer, header);
  if (early == nullptr || !expect_fragment(peer, header, early->expected)) return nullptr;
  return early->memory.get() + header.offset;
}

// No fragment comes twice: while one is on its way to its place, the message cannot end and the
// place stays.
bool Mailbox::expect_fragment(int peer, const PacketHeader& header, std::size_t& expected) {
  expected += header.payload_bytes;
  if (expected <= header.message_bytes) return true;
  fail(peer, "sent part of a message twice");
  return false;
}

// Null: a breach of the protocol.
Mailbox::Early* Mailbox::early_for(int peer, const PacketHeader& header) {
  Peer& state = at(peer);
  const auto found = state.early.find(header.key);
  if (found != state.early.end()) {
    if (found->second.claim.bytes == header.message_bytes) return &found->second;
    fail(peer, "sent two messages by one name");
    return nullptr;
  }
  if (header.message_bytes > kEagerBytes) {
    fail(peer, "sent a large message that was not granted");
    return nullptr;
  }
  state.early_weight += weight(header.message_bytes);
  if (state.early_weight > kCreditBytes) {
    fail(peer, "sent more than its credit");
    return nullptr;
  }
  Early& early = state.early[header.key];
  early.memory = std::make_unique<std::byte[]>(header.message_bytes);
  early.claim = claim_of(header);
  return &early;
}

void Mailbox::arrived(int peer, const PacketHeader& header, const std::byte* payload, Seconds now) {
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

void Mailbox::arrived_data(int peer, const PacketHeader& header, const std::byte* payload,
                           Seconds now) {
  const auto receive = at(peer).receives.find(header.key);
  if (receive == at(peer).receives.end()) return arrived_early(peer, header, payload);
  Transfer& transfer = *receive->second;
  if (!check(peer, transfer, claim_of(header))) return;
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

void Mailbox::arrived_early(int peer, const PacketHeader& header, const std::byte* payload) {
  Early* const early = early_for(peer, header);
  if (early == nullptr) return;
  if (early->received + header.payload_bytes > early->claim.bytes)
    return fail(peer, "sent part of a message twice");
  std::byte* const to = early->memory.get() + header.offset;
  if (header.payload_bytes > 0 && payload != to) std::memcpy(to, payload, header.payload_bytes);
  early->received += header.payload_bytes;
  if (early->received < early->claim.bytes || early->wanted_by == nullptr) return;
  take_early(*early->wanted_by, *early);
  at(peer).early.erase(header.key);
}

bool Mailbox::fits_elements(int peer, const PacketHeader& header, const Transfer& transfer) {
  const Schedule& schedule = transfer.operation->schedule;
  if (schedule.steps()[transfer.step].kind != StepKind::kReceiveReduce) return true;
  const std::size_t element = size_of(schedule.reduction.type);
  if (header.offset % element == 0 && header.payload_bytes % element == 0) return true;
  fail(peer, "sent a fragment that cuts an element");
  return false;
}

void Mailbox::take_early(Transfer& transfer, const Early& early) {
  at(transfer.peer).early_weight -= weight(early.claim.bytes);
  if (early.claim.bytes > 0) deliver(transfer, 0, early.memory.get(), early.claim.bytes);
  end_receive(transfer);
}

void Mailbox::end_receive(Transfer& transfer) {
  if (!transfer.is_granted) consume(transfer.peer, weight(transfer.bytes()));
  transfer.is_active = false;
  ended_.push_back(&transfer);
}

void Mailbox::consume(int peer, std::size_t bytes) {
  Peer& state = at(peer);
  state.consumed += bytes;
  if (state.consumed < kCreditBytes / 4) return;
  links_[static_cast<std::size_t>(peer)]->post_control(
      {.kind = PacketKind::kCredit, .message_bytes = std::exchange(state.consumed, 0)}, {});
}

void Mailbox::arrived_request(int peer, const PacketHeader& header) {
  Peer& state = at(peer);
  const auto receive = state.receives.find(header.key);
  if (receive == state.receives.end()) {
    state.requests.emplace(header.key, claim_of(header));
    return;
  }
  Transfer& transfer = *receive->second;
  if (!check(peer, transfer, claim_of(header))) return;
  // A large one was granted when it was asked for: the two crossed.
  if (!transfer.is_granted) grant(transfer);
}

void Mailbox::arrived_grant(int peer, const PacketHeader& header) {
  Peer& state = at(peer);
  const auto send = state.sends.find(header.key);
  if (send == state.sends.end()) {
    state.grants.emplace(header.key, claim_of(header));
    return;
  }
  Transfer& transfer = *send->second;
  state.sends.erase(send);
  if (!check(peer, transfer, claim_of(header))) return;
  transfer.is_granted = true;
  links_[static_cast<std::size_t>(peer)]->post_message(transfer.out);
}

void Mailbox::grant(Transfer& transfer) {
  transfer.is_granted = true;
  const Step& step = transfer.operation->schedule.steps()[transfer.step];
  links_[static_cast<std::size_t>(transfer.peer)]->post_grant(
      {.kind = PacketKind::kGrant,
       .key = transfer.key(),
       .message_bytes = transfer.bytes(),
       .call = transfer.out.call},
      step.kind == StepKind::kReceive ? step.dst : nullptr);
}

void Mailbox::sent(OutMessage& message, Seconds now) {
  Transfer& transfer = transfer_of(message);
  transfer.operation->note_movement(now);
  if (message.written < message.bytes) return;
  transfer.is_active = false;
  ended_.push_back(&transfer);
}

bool Mailbox::check(int peer, const Transfer& transfer, const Claim& theirs) {
  if (transfer.out.call != theirs.call) {
    if (contradicted_ == nullptr) contradicted_ = transfer.operation;
    return false;
  }
  if (transfer.bytes() == theirs.bytes) return true;
  const Group& group = *transfer.operation->group;
  const int own = group.members[static_cast<std::size_t>(group.rank)];
  fail(peer, "has a message of " + std::to_string(theirs.bytes) + " bytes where " +
                 names_[static_cast<std::size_t>(own)] + " has " +
                 std::to_string(transfer.bytes()) + " in " + transfer.operation->name +
                 ": call it with the same count and type on both");
  return false;
}

void Mailbox::post_control(PacketKind kind, const Transfer& transfer) {
  links_[static_cast<std::size_t>(transfer.peer)]->post_control({.kind = kind,
                                                                 .key = transfer.key(),
                                                                 .message_bytes = transfer.bytes(),
                                                                 .call = transfer.out.call},
                                                                {});
}

void Mailbox::fail(int peer, const std::string& what) {
  if (error_) return;
  error_ = Error{Code::kInvalidInput, names_[static_cast<std::size_t>(peer)] + " " + what};
}

void Mailbox::remind() {
  for (const Peer& peer : peers_)
    for (const auto& [key, transfer] : peer.sends)
      if (transfer->bytes() > kEagerBytes && ++transfer->reminders == 2)
        post_control(PacketKind::kRequest, *transfer);
}

std::vector<Transfer*> Mailbox::take_ended() {
  return std::exchange(ended_, {});
}

void Mailbox::clear() {
  for (Peer& peer : peers_)
    peer = {};
  ended_.clear();
  contradicted_ = nullptr;
}

}  // namespace regatta::comm
