#include "regatta/runtime/comm/internal/engine/survival.h"

#include <chrono>
#include <cstddef>
#include <utility>

#include "regatta/runtime/comm/internal/transport/wire_header.h"

namespace regatta::comm {

Survival::Survival(int rank, int world_size, std::function<void()> wake)
    : rank_(rank), world_size_(world_size), wake_(std::move(wake)), agreement_(rank, world_size) {}

void Survival::stop() {
  stop_wanted_.store(true);
  wake_();
  is_stopped_.wait(false);
}

void Survival::note_stopped() {
  is_stopped_.store(true);
  is_stopped_.notify_all();
}

Result<Agreement::Outcome> Survival::agree(bool consents, std::string word, Seconds patience) {
  const Statement longest{.lost = std::vector<bool>(static_cast<std::size_t>(world_size_)),
                          .word = word};
  if (encode_statement(longest).size() > kTextBytesMax)
    return Error{Code::kUnsupported, "shrink: what this rank tells the others is longer than " +
                                         std::to_string(kTextBytesMax) +
                                         " bytes: give its server a shorter name"};
  std::unique_lock lock(mutex_);
  if (!agreement_.excluded_by()) agreement_.begin(consents, std::move(word));
  note_change();
  const auto has_ended = [&] { return agreement_.outcome() || agreement_.excluded_by(); };
  const std::chrono::duration<double> limit(patience.value);
  while (!changed_.wait_for(lock, limit, has_ended)) {
    for (const int rank : agreement_.silent())
      agreement_.lose(rank);
    note_change();
  }
  if (const auto by = agreement_.excluded_by())
    return Error{Code::kUnavailable,
                 *by == rank_
                     ? "shrink: this rank has left the others: connect again"
                     : "shrink: the others go on without this rank, which rank " +
                           std::to_string(*by) +
                           " found silent, or waited for in vain to call shrink: connect again"};
  return *agreement_.outcome();
}

bool Survival::is_outdated() const {
  const std::lock_guard lock(mutex_);
  return agreement_.is_outdated();
}

void Survival::expel(const std::vector<int>& ranks) {
  const std::lock_guard lock(mutex_);
  for (const int rank : ranks)
    agreement_.lose(rank);
  agreement_.tell_lost();
  note_change();
}

void Survival::lose(int rank) {
  const std::lock_guard lock(mutex_);
  agreement_.lose(rank);
  note_change();
}

void Survival::hear(int from, std::string_view statement) {
  auto heard = decode_statement(statement, world_size_);
  if (!heard) return;
  const std::lock_guard lock(mutex_);
  agreement_.hear(from, std::move(*heard));
  note_change();
}

bool Survival::is_lost(int rank) const {
  const std::lock_guard lock(mutex_);
  return agreement_.lost()[static_cast<std::size_t>(rank)];
}

std::vector<std::string> Survival::take_statements() {
  if (!has_statements_.exchange(false)) return {};
  const std::lock_guard lock(mutex_);
  std::vector<std::string> texts;
  for (const Statement& statement : agreement_.take_statements())
    texts.push_back(encode_statement(statement));
  return texts;
}

void Survival::note_change() {
  changed_.notify_all();
  if (agreement_.has_statements() && !has_statements_.exchange(true)) wake_();
}

}  // namespace regatta::comm
