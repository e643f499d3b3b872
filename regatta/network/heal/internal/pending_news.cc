#include "regatta/network/heal/internal/pending_news.h"

#include <algorithm>
#include <array>

namespace regatta::heal {
namespace {

// Whether the fault alone asks for another route where one of the changes is.
bool concerns(const Decision& alone, std::span<const RouteChange> changes) {
  return std::ranges::any_of(changes, [&](const RouteChange& change) {
    return std::ranges::any_of(alone.withdrawals, [&](const Withdrawal& one) {
      return one.node == change.node && one.leaf == change.leaf;
    });
  });
}

}  // namespace

void PendingNews::add_broken(const EventReason& reason, bool is_known) {
  const auto is_there = [&](const News& one) { return one.reason.fault.is_at(reason.fault); };
  if (const auto back = std::ranges::find_if(working_, is_there); back != working_.end()) {
    const bool is_told = back->is_known;
    working_.erase(back);
    if (!is_told) return;
    is_known = false;
  }
  const auto known = std::ranges::find_if(broken_, is_there);
  if (known == broken_.end()) {
    broken_.push_back({reason, is_known});
  } else {
    known->reason = reason;
  }
}

void PendingNews::add_working(const EventReason& reason) {
  const auto known = std::ranges::find_if(
      broken_, [&](const News& one) { return one.reason.fault.is_at(reason.fault); });
  if (known != broken_.end()) {
    const bool is_told = known->is_known;
    broken_.erase(known);
    if (!is_told) return;
  }
  working_.push_back({reason});
}

std::vector<EventReason> PendingNews::take(std::vector<News>& news,
                                           const AppliedChanges& changes) const {
  std::vector<EventReason> due;
  std::vector<News> left;
  for (News& one : news) {
    bool waits = false;
    bool is_due = true;
    if (!changes.undone.empty()) {
      const Decision alone = decide(paths_, std::array{one.reason.fault});
      waits = concerns(alone, changes.undone);
      is_due = !waits || concerns(alone, changes.done);
    }
    if (is_due) due.push_back(one.reason);
    one.is_known = one.is_known || is_due;
    if (waits) left.push_back(std::move(one));
  }
  news = std::move(left);
  return due;
}

PendingNews::Due PendingNews::take(const AppliedChanges& changes) {
  return {.broken = take(broken_, changes), .working = take(working_, changes)};
}

}  // namespace regatta::heal
