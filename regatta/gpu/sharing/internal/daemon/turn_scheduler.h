// sharing/internal/daemon/turn_scheduler.h: one device's time: opens and closes launches of its
// tenants so that each gets its part (internal/policy/share.h, internal/policy/turns.h), whatever
// their processes say and when. Pure: what the processes say goes in, orders to the tenants' pages
// come out, time (ns of CLOCK_MONOTONIC) is an argument.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "regatta/gpu/sharing/internal/daemon/use_history.h"
#include "regatta/gpu/sharing/internal/ledger/page_layout.h"
#include "regatta/gpu/sharing/internal/policy/share.h"
#include "regatta/gpu/sharing/internal/policy/turns.h"

namespace regatta::sharing {

struct TurnSchedulerOptions {
  std::uint64_t quantum_ns = 5'000'000;
  // Work in flight of one process: enough to keep the device busy, little enough that it ends
  // before somebody who comes back has waited long.
  std::uint64_t bound_ns = 20'000'000;
  // The same for a tenant beside one of high priority.
  std::uint64_t bound_beside_high_ns = 100'000;
  // The next tenant is told that its turn has come so long before the work of the last one ends:
  // as long as it takes until it launches, which is measured, at most this.
  std::uint64_t lead_most_ns = REGATTA_LEAD_MOST_NS;
  // Part of that: from the launch until the device works.
  std::uint64_t launch_ns = 100'000;
  // A turn whose work does not end is given up after this: a process that was stopped does not
  // stop the others.
  std::uint64_t overdue_ns = 10'000'000'000;
};

// What all processes of a tenant do together.
struct TenantActivity {
  bool wants = false;           // one waits to launch
  bool works = false;           // one launches or has work in flight
  bool is_swapped_out = false;  // its memory is not there: its turn ends, and it has no other
  bool is_used_up = false;      // it wants, and all who do have used up the turn of now
  std::uint64_t ends_ns = 0;  // when its work in flight is expected to end, after which it launches
                              // no more in this turn; 0: not known
  std::uint64_t used_ns = 0;  // of the device, since it was last seen
};

struct ScheduledTenant {
  regatta_share_request limits{};  // `runnable` is not looked at
  bool is_high = false;
};

// To be written to the tenant's page. After kClose the caller looks anew at what the tenant does.
struct TurnCommand {
  enum class Kind : std::uint8_t { kOpen, kClose, kChange };  // kChange: deadline or bound
  Kind kind = Kind::kOpen;
  int tenant = 0;
  unsigned number = 0;
  std::uint64_t deadline_ns = 0;
  std::uint64_t bound_ns = 0;
};

class TurnScheduler {
 public:
  using Tenants = std::array<ScheduledTenant, REGATTA_TENANTS_MAX>;

  TurnScheduler(const TurnSchedulerOptions& options, std::uint64_t now_ns);

  void set_tenants(regatta_share_policy policy, const Tenants& tenants, std::uint64_t now_ns);
  void see(int tenant, TenantActivity doing, std::uint64_t now_ns);
  // A tenant that has gone: its debt and its history with it.
  void forget(int tenant, std::uint64_t now_ns);

  // What is to be done next; none: nothing until wake_ns() or until somebody does something else.
  std::optional<TurnCommand> next_order(std::uint64_t now_ns);
  std::uint64_t wake_ns() const { return wake_ns_; }  // ~0: never

  // A process launched so long after its turn was opened; next_order() was called so long after
  // wake_ns().
  void learn_delay(std::uint64_t delay_ns);
  void learn_lateness(std::uint64_t lateness_ns);

  std::uint64_t opened_ns() const { return opened_ns_; }
  int open_tenant() const { return open_; }  // -1: none
  unsigned turn_number() const { return number_; }
  unsigned share_ppm(int tenant) const { return parts_[static_cast<std::size_t>(tenant)]; }
  const UseHistory& history() const { return history_; }

 private:
  // Open: launches are; a turn is under way from the first launch on. Closing: they are not, and
  // somebody else's will be when the work in flight is about to end.
  enum class Phase : std::uint8_t { kFree, kOpen, kClosing };

  void divide(std::uint64_t now_ns);
  std::uint64_t bound_of(int tenant) const;
  std::uint64_t deadline(std::uint64_t now_ns);
  TurnCommand order(TurnCommand::Kind kind, std::uint64_t now_ns);
  void end_turn(std::uint64_t now_ns);
  TurnCommand close(std::uint64_t now_ns);
  void settle(int tenant);
  std::uint64_t lead_ns() const {
    // Twice the mean: to be late costs the device's time, to be early nothing.
    const std::uint64_t lead = 2 * delay_ns_ + lateness_ns_ + options_.launch_ns;
    return lead < options_.lead_most_ns ? lead : options_.lead_most_ns;
  }
  std::optional<TurnCommand> choose(std::uint64_t now_ns);
  std::optional<TurnCommand> watch_open(std::uint64_t now_ns);
  std::optional<TurnCommand> watch_closing(std::uint64_t now_ns);

  TurnSchedulerOptions options_;
  regatta_share_policy policy_ = REGATTA_SHARE_FIXED;
  Tenants tenants_{};
  std::array<TenantActivity, REGATTA_TENANTS_MAX> doings_{};
  std::array<unsigned, REGATTA_TENANTS_MAX> parts_{};
  struct Account {
    std::uint64_t held_ns = 0;  // and charged
    std::uint64_t used_ns = 0;
  };
  std::array<Account, REGATTA_TENANTS_MAX> accounts_{};  // since nothing of it was in flight
  unsigned count_ = 0;                                   // tenants from this number on are absent
  bool any_high_ = false;
  regatta_turns turns_{};
  UseHistory history_;
  Phase phase_ = Phase::kFree;
  int open_ = -1;              // the tenant whose launches are open, or whose turn closes
  int leaving_ = -1;           // the one before, while the last of its work is in flight
  bool is_preempted_ = false;  // the turn that closes, by one of high priority
  std::uint64_t delay_ns_ = 50'000;
  std::uint64_t lateness_ns_ = 0;
  std::uint64_t opened_ns_ = 0;
  unsigned number_ = 0;
  std::uint64_t began_ns_ = 0;   // of the turn under way
  std::uint64_t closed_ns_ = 0;  // when it was closed
  std::uint64_t told_deadline_ns_ = 0;
  std::uint64_t told_bound_ns_ = 0;
  std::uint64_t wake_ns_ = ~0ULL;
};

}  // namespace regatta::sharing
