// Operations that stand still: who is missing? Shortly before the progress timeout a rank asks the
// others how far they are; their progress threads answer even when their callers hang.
#include <algorithm>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "regatta/coll/engine/world.h"
#include "regatta/core/units_text.h"

namespace regatta::coll {
namespace {

// How long before the timeout the others are asked: time for answers on a busy machine.
constexpr Seconds kAskingTime{2.0};
// How long the verdict waits for ranks that do not answer, when nobody else is at fault.
constexpr Seconds kAnswerTime{1.0};
constexpr char kHasCalled = 'C';
constexpr char kHasNotCalled = 'N';

bool contains(const std::vector<int>& ranks, int rank) {
  return std::find(ranks.begin(), ranks.end(), rank) != ranks.end();
}

// The ranks that can tell how far the operation is.
std::vector<int> partners(const Operation& operation) {
  return operation.is_collective ? operation.group->members : waited_for(operation);
}

// The name of an operation in queries: all its keys share group and number.
MessageKey query_key(const Operation& operation) {
  if (operation.is_collective) return {operation.group->id, operation.number, 0};
  return operation.transfers.front().key();
}

bool is_named(const Operation& operation, int asker, const MessageKey& key) {
  if (query_key(operation) != key) return false;
  return operation.is_collective || operation.transfers.front().peer == asker;
}

}  // namespace

void World::remember(const std::shared_ptr<Group>& group) {
  std::erase_if(known_groups_, [](const auto& known) { return known.expired(); });
  known_groups_.push_back(group);
}

void World::check_stalls(Seconds now) {
  if (progress_timeout_.value <= 0 || failed_) return;
  if (shm_ != nullptr)
    if (const auto stalled = shm_->check_stalls(now, progress_timeout_)) return fail(*stalled);
  const Seconds asking = std::min(progress_timeout_ / 2, kAskingTime);
  for (const auto& group : runner_.groups()) {
    for (const auto& operation : group->active) {
      const Seconds still = now - operation->progressed_at;
      const bool is_open = operation->absent.empty() && !silent_partners(*operation).empty();
      if (still >= progress_timeout_ + (is_open ? kAnswerTime : Seconds{0.0})) {
        const Error error{Code::kTimeout, describe_stall(*operation)};
        return fail(error);
      }
      if (still < progress_timeout_ - asking) {
        operation->asked = false;
        operation->answered.clear();
        operation->absent.clear();
      } else if (!operation->asked) {
        ask_peers(*operation);
      }
    }
  }
}

void World::ask_peers(Operation& operation) {
  operation.asked = true;
  for (const int rank : partners(operation))
    if (rank != rank_)
      links_[static_cast<std::size_t>(rank)]->post_control(
          {.kind = PacketKind::kQuery, .key = query_key(operation)}, {});
}

void World::answer_query(int asker, const MessageKey& key) {
  char answer = kHasNotCalled;
  for (const auto& weak : known_groups_) {
    const auto group = weak.lock();
    if (group == nullptr || group->id != key.group) continue;
    const bool is_agreement = (key.operation & kAgreementNumber) != 0;
    const std::uint32_t number = key.operation & ~kAgreementNumber;
    if (number < (is_agreement ? group->agreements_started : group->collectives_started))
      answer = kHasCalled;
  }
  for (const auto& group : runner_.groups())
    for (const auto& operation : group->active)
      if (is_named(*operation, asker, key)) answer = kHasCalled;
  links_[static_cast<std::size_t>(asker)]->post_control({.kind = PacketKind::kReply, .key = key},
                                                        std::string_view(&answer, 1));
}

void World::note_reply(int peer_rank, const MessageKey& key, std::string_view text) {
  const bool has_called = !text.empty() && text.front() == kHasCalled;
  for (const auto& group : runner_.groups())
    for (const auto& operation : group->active)
      if (is_named(*operation, peer_rank, key))
        (has_called ? operation->answered : operation->absent).push_back(peer_rank);
}

std::vector<int> World::silent_partners(const Operation& operation) const {
  std::vector<int> silent;
  for (const int rank : partners(operation))
    if (rank != rank_ && !contains(operation.answered, rank) && !contains(operation.absent, rank))
      silent.push_back(rank);
  return silent;
}

std::string World::describe_stall(const Operation& operation) const {
  const std::vector<int> silent = silent_partners(operation);
  const std::string start =
      operation.name + ": no progress for " + format_seconds(progress_timeout_) + ": ";
  // Who says that it has not called is at fault for certain; who is silent may only be busy.
  if (!operation.absent.empty()) {
    std::vector<int> absent = operation.absent;
    std::sort(absent.begin(), absent.end());
    return start + name_all(absent) + (absent.size() == 1 ? " has" : " have") + " not called it";
  }
  if (!silent.empty())
    return start + name_all(silent) + (silent.size() == 1 ? " does" : " do") + " not answer";
  return start + name(rank_) + " waits for " + name_all(waited_for(operation)) +
         ", which is in it too: the path between them may be blocked";
}

}  // namespace regatta::coll
