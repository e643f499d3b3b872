#include "regatta/runtime/comm/internal/engine/membership.h"

#include <cstddef>
#include <utility>

#include "regatta/base/core/ids.h"
#include "regatta/runtime/comm/internal/transport/wire_header.h"

namespace regatta::comm {

Membership::Membership(int rank, int world_size, std::function<void()> wake)
    : rank_(rank), world_size_(world_size), wake_(std::move(wake)), consensus_(rank, world_size) {}

void Membership::stop() {
  is_stop_requested_.store(true);
  wake_();
  is_stopped_.wait(false);
}

void Membership::confirm_stop() {
  is_stopped_.store(true);
  is_stopped_.notify_all();
}

Result<MembershipConsensus::Outcome> Membership::agree(bool consents, std::string payload,
                                                       Seconds timeout) {
  const MembershipStatement longest{.lost = std::vector<bool>(as_index(world_size_)),
                                    .payload = payload};
  if (encode_statement(longest).size() > kTextBytesMax)
    return Error{Code::kUnsupported, "shrink: the payload of this rank is longer than " +
                                         std::to_string(kTextBytesMax) +
                                         " bytes: give its server a shorter name"};
  MutexLock lock(mutex_);
  if (!consensus_.excluded_by()) consensus_.begin(consents, std::move(payload));
  notify_change();
  const auto has_ended = [this]() REGATTA_REQUIRES(mutex_) {
    return consensus_.outcome() || consensus_.excluded_by();
  };
  while (!changed_.wait_for(lock, timeout, has_ended)) {
    for (const int rank : consensus_.silent())
      consensus_.mark_lost(rank);
    notify_change();
  }
  if (const auto by = consensus_.excluded_by())
    return Error{Code::kUnavailable,
                 *by == rank_
                     ? "shrink: this rank has left the others: connect again"
                     : "shrink: the others go on without this rank, because rank " +
                           std::to_string(*by) +
                           " found it silent or waited in vain for its shrink: connect again"};
  return *consensus_.outcome();
}

bool Membership::is_outdated() const {
  const MutexLock lock(mutex_);
  return consensus_.is_outdated();
}

void Membership::exclude(const std::vector<int>& ranks) {
  const MutexLock lock(mutex_);
  for (const int rank : ranks)
    consensus_.mark_lost(rank);
  consensus_.announce_lost();
  notify_change();
}

void Membership::mark_lost(int rank) {
  const MutexLock lock(mutex_);
  consensus_.mark_lost(rank);
  notify_change();
}

void Membership::receive(int from, std::string_view statement) {
  auto decoded = decode_statement(statement, world_size_);
  if (!decoded) return;
  const MutexLock lock(mutex_);
  consensus_.receive(from, std::move(*decoded));
  notify_change();
}

bool Membership::is_lost(int rank) const {
  const MutexLock lock(mutex_);
  return at(consensus_.lost(), rank);
}

std::vector<std::string> Membership::consume_statements() {
  if (!has_statements_.exchange(false)) return {};
  const MutexLock lock(mutex_);
  std::vector<std::string> texts;
  for (const MembershipStatement& statement : consensus_.consume_statements())
    texts.push_back(encode_statement(statement));
  return texts;
}

void Membership::notify_change() {
  changed_.notify_all();
  if (consensus_.has_statements() && !has_statements_.exchange(true)) wake_();
}

}  // namespace regatta::comm
