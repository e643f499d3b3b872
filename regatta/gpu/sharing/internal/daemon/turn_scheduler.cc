#include "regatta/gpu/sharing/internal/daemon/turn_scheduler.h"

#include <algorithm>

#include "regatta/base/core/ids.h"
#include "regatta/gpu/sharing/internal/daemon/device_slices.h"
#include "regatta/gpu/sharing/internal/ledger/page_layout.h"

namespace regatta::sharing {
namespace {

constexpr std::uint64_t kNever = ~0ULL;

bool is_runnable(const TenantActivity& doing) {
  return doing.wants || doing.works;
}

}  // namespace

TurnScheduler::TurnScheduler(const TurnSchedulerOptions& options, std::uint64_t now_ns)
    : options_(options) {
  regatta_turns_init(&turns_, 0, options.quantum_ns, now_ns);
}

void TurnScheduler::set_tenants(regatta_share_policy policy, const Tenants& tenants,
                                std::uint64_t now_ns) {
  policy_ = policy;
  tenants_ = tenants;
  any_high_ = false;
  for (int i = 0; i < REGATTA_TENANTS_MAX; ++i) {
    const ScheduledTenant& one = at(tenants_, i);
    if (one.limits.present == 0 && one.limits.quota_ppm == 0) continue;
    count_ = std::max(count_, static_cast<unsigned>(i) + 1);
    any_high_ = any_high_ || (one.is_high && one.limits.present != 0);
  }
  turns_.count = count_;
  for (unsigned i = 0; i < count_; ++i)
    regatta_turns_set_high(&turns_, i, tenants_[i].is_high ? 1 : 0);
  divide(now_ns);
}

void TurnScheduler::set_activity(int tenant, TenantActivity doing, std::uint64_t now_ns) {
  const bool was_runnable = is_runnable(at(doings_, tenant));
  at(doings_, tenant) = doing;
  if (tenant == leaving_ && !doing.works) leaving_ = -1;
  history_.add(tenant, now_ns - std::min(now_ns, doing.used_ns), now_ns);
  Account& account = at(accounts_, tenant);
  // A tenant may end its work many times in one turn: what it was charged for does not count again.
  const std::uint64_t known = at(ended_ns_, tenant);
  if (account.entered_ns == 0 && (doing.works || doing.ended_ns > known))
    account.entered_ns = doing.entered_ns == 0 ? 0 : std::max(doing.entered_ns, known);
  if (!doing.works && turns_.holder != tenant) settle(tenant, now_ns);
  if (is_runnable(doing) == was_runnable) return;
  if (static_cast<unsigned>(tenant) >= count_)
    turns_.count = count_ = static_cast<unsigned>(tenant) + 1;
  regatta_turns_set_runnable(&turns_, static_cast<unsigned>(tenant), is_runnable(doing) ? 1 : 0,
                             now_ns);
  if (policy_ == REGATTA_SHARE_BURST_WEIGHT) divide(now_ns);
}

void TurnScheduler::forget(int tenant, std::uint64_t now_ns) {
  set_activity(tenant, {}, now_ns);
  if (turns_.holder == tenant) end_turn(now_ns);
  if (open_ == tenant) {  // in a page that is gone: the next tenant of this number has another one
    open_ = -1;
    phase_ = Phase::kFree;
  }
  turns_.tenants[tenant].balance = 0;
  turns_.tenants[tenant].idle_since_ns = 0;
  at(accounts_, tenant) = {};
  history_.forget(tenant);
}

// The shares under the policy. Those that are idle get the share that they would have if they came
// back: nothing runs on it, but by it their debts shrink.
void TurnScheduler::divide(std::uint64_t now_ns) {
  std::array<regatta_share_request, REGATTA_TENANTS_MAX> requests{};
  std::array<unsigned, REGATTA_TENANTS_MAX> if_all_work{};
  for (unsigned i = 0; i < count_; ++i) {
    requests[i] = tenants_[i].limits;
    requests[i].runnable = requests[i].present;
  }
  regatta_compute_shares(policy_, requests.data(), count_, if_all_work.data());
  for (unsigned i = 0; i < count_; ++i)
    requests[i].runnable = requests[i].present != 0 && is_runnable(doings_[i]) ? 1 : 0;
  regatta_compute_shares(policy_, requests.data(), count_, shares_.data());
  for (unsigned i = 0; i < count_; ++i) {
    if (requests[i].runnable == 0) shares_[i] = if_all_work[i];
  }
  regatta_turns_set_shares(&turns_, shares_.data(), policy_ == REGATTA_SHARE_BURST_WEIGHT ? 1 : 0,
                           now_ns);
}

// Until when tenants that had work a moment ago may be expected back; 0: there are none.
std::uint64_t TurnScheduler::others_return_until(std::uint64_t now_ns) const {
  std::uint64_t until = 0;
  for (unsigned i = 0; i < count_; ++i) {
    const std::uint64_t ended = turns_.tenants[i].idle_since_ns;
    const std::uint64_t end = ended == 0 ? 0 : ended + options_.returning_ns;
    const bool is_idle = turns_.tenants[i].runnable == 0 && static_cast<int>(i) != open_;
    if (is_idle && end > now_ns) until = std::max(until, end);
  }
  return until;
}

std::uint64_t TurnScheduler::bound_of(int tenant, std::uint64_t now_ns) const {
  if (any_high_ && !at(tenants_, tenant).is_high) return options_.bound_beside_high_ns;
  return others_return_until(now_ns) != 0 ? options_.bound_beside_returning_ns : options_.bound_ns;
}

// When the turn in progress is over; 0: never, as long as nothing changes.
std::uint64_t TurnScheduler::deadline(std::uint64_t now_ns) {
  if (turns_.holder < 0) return 0;
  const std::uint64_t left = regatta_turns_left(&turns_, now_ns);
  return left == kNever ? 0 : now_ns + left;
}

TurnCommand TurnScheduler::order(TurnCommand::Kind kind, std::uint64_t now_ns) {
  told_deadline_ns_ = deadline(now_ns);
  told_bound_ns_ = bound_of(open_, now_ns);
  return {kind, open_, number_, told_deadline_ns_, told_bound_ns_};
}

void TurnScheduler::learn_delay(std::uint64_t delay_ns) {
  const std::uint64_t delay = std::min(delay_ns, options_.lead_most_ns);
  delay_ns_ = (7 * delay_ns_ + delay) / 8;
}

void TurnScheduler::learn_lateness(std::uint64_t lateness_ns) {
  const std::uint64_t lateness = std::min(lateness_ns, options_.lead_most_ns);
  lateness_ns_ = (7 * lateness_ns_ + lateness) / 8;
}

// The time from the tenant's first launch to the end of its last work, but for what others were
// charged of it, and for the slices (device_slices.h) of another tenant that had work on the
// device, too: no sample of its kernels decides, and no number of processes.
std::uint64_t TurnScheduler::charge_of(int tenant, std::uint64_t now_ns) {
  const std::uint64_t begin = std::min(now_ns, at(accounts_, tenant).begin_ns());
  const std::uint64_t ended = at(doings_, tenant).ended_ns;
  const std::uint64_t end = ended > begin ? ended : now_ns;
  const int other = open_ >= 0 && open_ != tenant ? open_ : leaving_;
  const std::uint64_t entered = other >= 0 && other != tenant ? at(accounts_, other).entered_ns : 0;
  if (entered == 0 || entered >= end) return charged_.charge(begin, end);
  if (entered <= begin) return charge_both(tenant, other, begin, end);
  return charged_.charge(begin,
                         end - slices_beside_last_work(end - entered, options_.time_slice_ns));
}

// The other tenant had work on the device all the time and may have for long: it is charged at once
// for what it got of it, and for what it had alone before. Returns what this one got.
std::uint64_t TurnScheduler::charge_both(int tenant, int other, std::uint64_t begin_ns,
                                         std::uint64_t end_ns) {
  Account& account = at(accounts_, other);
  const std::uint64_t alone = begin_ns - std::min(begin_ns, at(ended_ns_, tenant));
  const std::uint64_t before = charged_.charge(std::min(account.begin_ns(), begin_ns), begin_ns);
  const std::uint64_t both = charged_.charge(begin_ns, end_ns);
  const std::uint64_t later = slices_beside_longer_work(both, alone, options_.time_slice_ns);
  pay(other, before + both - later);
  account.began_ns = end_ns;
  return later;
}

// Charges that time instead of the length of the turns: late messages are not the tenant's fault,
// but a kernel that continues into the next turn is.
void TurnScheduler::pay(int tenant, std::uint64_t charge_ns) {
  Account& account = at(accounts_, tenant);
  turns_.tenants[tenant].balance -=
      (static_cast<long long>(charge_ns) - static_cast<long long>(account.held_ns)) *
      REGATTA_WHOLE_PPM;
  account.held_ns = 0;
}

// A tenant that never launched is charged for half of the time.
void TurnScheduler::settle(int tenant, std::uint64_t now_ns) {
  Account& account = at(accounts_, tenant);
  if (account.entered_ns != 0)
    pay(tenant, charge_of(tenant, now_ns));
  else
    pay(tenant, account.held_ns / 2);
  account = {};
  at(ended_ns_, tenant) = at(doings_, tenant).ended_ns;
}

void TurnScheduler::end_turn(std::uint64_t now_ns) {
  if (turns_.holder < 0) return;
  const int tenant = turns_.holder;
  regatta_turns_end(&turns_, now_ns);
  Account& account = at(accounts_, tenant);
  if (account.held_ns == 0) account.began_ns = began_ns_;
  account.held_ns += now_ns - began_ns_;
  if (!at(doings_, tenant).works) settle(tenant, now_ns);
}

TurnCommand TurnScheduler::close(std::uint64_t now_ns) {
  phase_ = Phase::kClosing;
  closed_ns_ = now_ns;
  check_at_ns_ = now_ns + options_.check_ns;
  is_preempted_ = false;
  for (unsigned i = 0; i < count_ && !at(tenants_, open_).is_high; ++i) {
    const regatta_turn_tenant& other = turns_.tenants[i];
    is_preempted_ = is_preempted_ || (other.runnable != 0 && other.is_high != 0);
  }
  return order(TurnCommand::Kind::kClose, now_ns);
}

std::optional<TurnCommand> TurnScheduler::choose(std::uint64_t now_ns) {
  unsigned long long wait = 0;
  const int tenant = regatta_turns_next(&turns_, now_ns, &wait);
  if (tenant < 0) {
    wake_ns_ = wait == kNever ? kNever : now_ns + wait;
    return std::nullopt;
  }
  number_ = (number_ + 1) & REGATTA_TURN_NUMBER_MAX;
  open_ = tenant;
  if (leaving_ == tenant) leaving_ = -1;
  phase_ = Phase::kOpen;
  at(doings_, tenant).is_used_up = false;  // the report is of the turn before
  began_ns_ = opened_ns_ = now_ns;
  regatta_turns_begin(&turns_, static_cast<unsigned>(tenant), now_ns);
  return order(TurnCommand::Kind::kOpen, now_ns);
}

std::optional<TurnCommand> TurnScheduler::watch_open(std::uint64_t now_ns) {
  const TenantActivity& doing = at(doings_, open_);
  if (doing.is_swapped_out) return close(now_ns);
  if (turns_.holder < 0 && is_runnable(doing)) {  // it began while no tenant waited
    began_ns_ = now_ns;
    regatta_turns_begin(&turns_, static_cast<unsigned>(open_), now_ns);
  }
  if (!is_runnable(doing)) {
    end_turn(now_ns);
    unsigned long long wait = 0;
    const bool is_wanted = regatta_turns_next(&turns_, now_ns, &wait) >= 0;
    const bool may_go_on = turns_.conserves != 0 || turns_.tenants[open_].balance >= 0;
    if (is_wanted || !may_go_on) return close(now_ns);
    // Launches stay open; the next one begins a turn without a new opening.
    wake_ns_ = wait == kNever ? kNever : now_ns + wait;
    if (told_deadline_ns_ == 0) return std::nullopt;
    return order(TurnCommand::Kind::kChange, now_ns);
  }
  if (doing.is_used_up && !doing.works) {
    end_turn(now_ns);
    unsigned long long wait = 0;
    if (regatta_turns_next(&turns_, now_ns, &wait) == open_) return choose(now_ns);
    return close(now_ns);
  }
  const std::uint64_t left = regatta_turns_left(&turns_, now_ns);
  if (left == 0 || (left <= lead_ns() && doing.ends_ns != 0)) return close(now_ns);
  const std::uint64_t due = left == kNever ? 0 : now_ns + left;
  wake_ns_ = due == 0 ? kNever : left > lead_ns() ? due - lead_ns() : due;
  if (const std::uint64_t until = others_return_until(now_ns); until != 0)
    wake_ns_ = std::min(wake_ns_, until);
  // Rounding makes deadlines differ by some ns.
  const std::uint64_t moved = std::max(due, told_deadline_ns_) - std::min(due, told_deadline_ns_);
  if (moved < 1000 && bound_of(open_, now_ns) == told_bound_ns_) return std::nullopt;
  return order(TurnCommand::Kind::kChange, now_ns);
}

std::optional<TurnCommand> TurnScheduler::watch_closing(std::uint64_t now_ns) {
  if (at(doings_, open_).works) {
    if (turns_.holder < 0) {  // it had begun just before it was closed
      began_ns_ = closed_ns_;
      regatta_turns_begin(&turns_, static_cast<unsigned>(open_), now_ns);
    }
    const std::uint64_t overdue = closed_ns_ + options_.overdue_ns;
    const std::uint64_t ends = at(doings_, open_).ends_ns;
    // Without an end, or with a late one, the next tenant gets slices of the device's time.
    const std::uint64_t opens =
        std::min(ends, closed_ns_ + options_.quantum_ns) - std::min(ends, options_.lead_most_ns);
    const bool is_about_to_end = now_ns >= opens;
    wake_ns_ = is_about_to_end ? overdue : opens;
    if (leaving_ < 0 && (is_about_to_end || is_preempted_)) {
      leaving_ = open_;
    } else if (now_ns < overdue) {
      wake_ns_ = std::min(wake_ns_, check_at_ns_);
      if (now_ns < check_at_ns_) return std::nullopt;
      check_at_ns_ = now_ns + options_.check_ns;
      return order(TurnCommand::Kind::kCheck, now_ns);
    }
  }
  end_turn(now_ns);
  open_ = -1;
  phase_ = Phase::kFree;
  return choose(now_ns);
}

std::optional<TurnCommand> TurnScheduler::next_order(std::uint64_t now_ns) {
  switch (phase_) {
    case Phase::kFree:
      return choose(now_ns);
    case Phase::kOpen:
      return watch_open(now_ns);
    case Phase::kClosing:
      return watch_closing(now_ns);
  }
  return std::nullopt;
}

}  // namespace regatta::sharing
