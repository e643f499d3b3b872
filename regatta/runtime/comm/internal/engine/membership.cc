#include "regatta/runtime/comm/internal/engine/membership.h"

#include <chrono>
#include <cstddef>
#include <utility>

#include "regatta/runtime/comm/internal/transport/wire_header.h"

namespace regatta::comm {

Membership::Membership(int rank, int world_size, std::function<void()> wake)
    : rank_(rank), world_size_(world_size), wake_(std::move(wake)), consensus_(rank, world_size) {}

void Membership::stop() {
  stop_wanted_.store(true);
  wake_();
  is_stopped_.wait(false);
}

void Membership::note_stopped() {
  is_stopped_.store(true);
  is_stopped_.notify_all();
}

Result<MembershipConsensus::Outcome> Membership::agree(bool consents, std::string payload,
                                                       Seconds timeout) {
  const MembershipStatement longest{
      .lost = std::vector<bool>(static_cast<std::size_t>(world_size_)), .payload = payload};
  if (encode_statement(longest).size() > kTextBytesMax)
    return Error{Code::kUnsupported, "shrink: what this rank tells the others is longer than " +
                                         std::to_string(kTextBytesMax) +
                                         " bytes: give its server a shorter name"};
  std::unique_lock lock(mutex_);
  if (!consensus_.excluded_by()) consensus_.begin(consents, std::move(payload));
  note_change();
  const auto has_ended = [&] { return consensus_.outcome() || consensus_.excluded_by(); };
  const std::chrono::duration<double> limit(timeout.value);
  while (!changed_.wait_for(lock, limit, has_ended)) {
    for (const int rank : consensus_.silent())
      consensus_.mark_lost(rank);
    note_change();
  }
  if (const auto by = consensus_.excluded_by())
    return Error{Code::kUnavailable,
                 *by == rank_
                     ? "shrink: this rank has left the others: connect again"
                     : "shrink: the others go on without this rank, which rank " +
                           std::to_string(*by) +
                           " found silent, or waited for in vain to call shrink: connect again"};
  return *consensus_.outcome();
}

bool Membership::is_outdated() const {
  const std::lock_guard lock(mutex_);
  return consensus_.is_outdated();
}

void Membership::exclude(const std::vector<int>& ranks) {
  const std::lock_guard lock(mutex_);
  for (const int rank : ranks)
    consensus_.mark_lost(rank);
  consensus_.announce_lost();
  note_change();
}

void Membership::mark_lost(int rank) {
  const std::lock_guard lock(mutex_);
  consensus_.mark_lost(rank);
  note_change();
}

void Membership::receive(int from, std::string_view statement) {
  auto heard = decode_statement(statement, world_size_);
  if (!heard) return;
  const std::lock_guard lock(mutex_);
  consensus_.receive(from, std::move(*heard));
  note_change();
}

bool Membership::is_lost(int rank) const {
  const std::lock_guard lock(mutex_);
  return consensus_.lost()[static_cast<std::size_t>(rank)];
}

std::vector<std::string> Membership::take_statements() {
  if (!has_statements_.exchange(false)) return {};
  const std::lock_guard lock(mutex_);
  std::vector<std::string> texts;
  for (const MembershipStatement& statement : consensus_.take_statements())
    texts.push_back(encode_statement(statement));
  return texts;
}

void Membership::note_change() {
  changed_.notify_all();
  if (consensus_.has_statements() && !has_statements_.exchange(true)) wake_();
}

}  // namespace regatta::comm
