// sharing/internal/daemon/turn_scheduler.h: divides one device's time: opens and closes the
// launches of its tenants so that each gets its share (internal/policy/share.h,
// internal/policy/turns.h), whatever their processes report and when. Pure: activities go in,
// commands for the tenants' pages come out, time (ns of CLOCK_MONOTONIC) is an argument.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>

#include "regatta/base/core/ids.h"
#include "regatta/gpu/sharing/internal/daemon/device_spans.h"
#include "regatta/gpu/sharing/internal/daemon/use_history.h"
#include "regatta/gpu/sharing/internal/ledger/page_layout.h"
#include "regatta/gpu/sharing/internal/policy/share.h"
#include "regatta/gpu/sharing/internal/policy/turns.h"

namespace regatta::sharing {

struct TurnSchedulerOptions {
  std::uint64_t quantum_ns = 5'000'000;
  // The most work in flight of one process: enough to keep the device busy, little enough that it
  // ends before a returning tenant has waited long.
  std::uint64_t bound_ns = 20'000'000;
  // The same while others that had work a moment ago may come back, for this long.
  std::uint64_t bound_beside_returning_ns = 2'000'000;
  std::uint64_t returning_ns = REGATTA_RETURN_NS;
  // The same for a tenant beside one of high priority.
  std::uint64_t bound_beside_high_ns = 100'000;
  // The next turn is opened this long before the work of the last one is expected to end. Launches
  // are closed before that, by the time that the next tenant takes until the device works for it:
  // until it launches, which is measured, and `launch_ns` more.
  std::uint64_t lead_most_ns = REGATTA_LEAD_MOST_NS;
  std::uint64_t launch_ns = 100'000;
  // A turn whose work does not end is given up after this, so a stopped process does not stop the
  // others.
  std::uint64_t overdue_ns = 10'000'000'000;
  // How often the processes of a turn that has been closed are asked whether they are stopped.
  std::uint64_t check_ns = 5'000'000;
  std::uint64_t time_slice_ns = REGATTA_TIME_SLICE_NS;
};

// Activity of all processes of a tenant together.
struct TenantActivity {
  bool wants = false;           // one waits to launch
  bool works = false;           // one launches or has work in flight
  bool is_swapped_out = false;  // its memory is not resident: its turn ends, and it gets no other
  bool is_used_up = false;      // it wants to launch, and each such process has used up this turn
  // When its work in flight is expected to end, after which it launches no more in this turn; 0:
  // unknown.
  std::uint64_t ends_ns = 0;
  // When one of its processes first launched in this turn; 0: none has, or it is unknown.
  std::uint64_t entered_ns = 0;
  // When the device ended its last work, or, later than now, is expected to; 0: unknown.
  std::uint64_t ended_ns = 0;
  std::uint64_t used_ns = 0;  // device time since the last report, for the history
};

struct ScheduledTenant {
  regatta_share_request limits{};  // `runnable` is ignored
  bool is_high = false;
};

// To be written to the tenant's page. After kClose and kCheck the caller reads the tenant's
// activity again.
struct TurnCommand {
  enum class Kind : std::uint8_t {
    kOpen,
    kClose,
    kChange,  // deadline or bound
    kCheck,   // whether processes of the tenant are stopped, which is not written
  };
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
  void set_activity(int tenant, TenantActivity doing, std::uint64_t now_ns);
  // The tenant has ended: forgets its debt and its history.
  void forget(int tenant, std::uint64_t now_ns);

  // The next command to carry out; none until wake_ns() or until an activity changes.
  std::optional<TurnCommand> next_order(std::uint64_t now_ns);
  std::uint64_t wake_ns() const { return wake_ns_; }  // ~0: never

  // learn_delay(): time from the opening of a turn until a process launched. learn_lateness(): time
  // from wake_ns() until next_order() was called.
  void learn_delay(std::uint64_t delay_ns);
  void learn_lateness(std::uint64_t lateness_ns);

  std::uint64_t opened_ns() const { return opened_ns_; }
  int open_tenant() const { return open_; }  // -1: none
  // The tenant before, while its last work is in flight; -1: none. Report the open one's activity
  // before this one's.
  int leaving_tenant() const { return leaving_; }
  unsigned turn_number() const { return number_; }
  // Whether the tenant has launched in the turn that is open or closing.
  bool has_entered() const { return open_ >= 0 && at(doings_, open_).entered_ns != 0; }
  unsigned share_ppm(int tenant) const { return at(shares_, tenant); }
  const UseHistory& history() const { return history_; }

 private:
  // Open: launches are allowed; a turn is in progress from the first launch on. Closing: they are
  // not; the next tenant's will be when the work in flight is about to end.
  enum class Phase : std::uint8_t { kFree, kOpen, kClosing };

  void divide(std::uint64_t now_ns);
  std::uint64_t bound_of(int tenant, std::uint64_t now_ns) const;
  std::uint64_t deadline(std::uint64_t now_ns);
  TurnCommand order(TurnCommand::Kind kind, std::uint64_t now_ns);
  void end_turn(std::uint64_t now_ns);
  TurnCommand close(std::uint64_t now_ns);
  void settle(int tenant, std::uint64_t now_ns);
  std::uint64_t charge_of(int tenant, std::uint64_t now_ns);
  std::uint64_t charge_both(int tenant, int other, std::uint64_t begin_ns, std::uint64_t end_ns);
  void pay(int tenant, std::uint64_t charge_ns);
  std::uint64_t others_return_until(std::uint64_t now_ns) const;
  std::uint64_t lead_ns() const {
    // Twice the mean: a late opening costs the device's time, an early one nothing.
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
  std::array<unsigned, REGATTA_TENANTS_MAX> shares_{};
  // Since the tenant had no work in flight.
  struct Account {
    std::uint64_t held_ns = 0;     // and charged
    std::uint64_t began_ns = 0;    // the first of these turns, or what was not yet paid
    std::uint64_t entered_ns = 0;  // when it first launched in them; 0: it has not
    std::uint64_t begin_ns() const { return std::max(began_ns, entered_ns); }
  };
  std::array<Account, REGATTA_TENANTS_MAX> accounts_{};
  DeviceSpans charged_;
  std::array<std::uint64_t, REGATTA_TENANTS_MAX> ended_ns_{};  // the work it was last charged for
  unsigned count_ = 0;  // tenants from this number on are absent
  bool any_high_ = false;
  regatta_turns turns_{};
  UseHistory history_;
  Phase phase_ = Phase::kFree;
  int open_ = -1;              // the tenant whose launches are open, or whose turn closes
  int leaving_ = -1;           // the tenant before, while its last work is in flight
  bool is_preempted_ = false;  // the closing turn ends for a tenant of high priority
  std::uint64_t delay_ns_ = 50'000;
  std::uint64_t lateness_ns_ = 0;
  std::uint64_t opened_ns_ = 0;
  unsigned number_ = 0;
  std::uint64_t began_ns_ = 0;   // of the turn in progress
  std::uint64_t closed_ns_ = 0;  // when it was closed
  std::uint64_t check_at_ns_ = 0;
  std::uint64_t told_deadline_ns_ = 0;
  std::uint64_t told_bound_ns_ = 0;
  std::uint64_t wake_ns_ = ~0ULL;
};

}  // namespace regatta::sharing
