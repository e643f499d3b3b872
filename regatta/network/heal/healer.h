// heal/healer.h: adapts the routes of a fabric to its faults: accepts sightings, decides, has the
// switches changed, and reports what it did.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "regatta/base/core/result.h"
#include "regatta/base/core/units.h"
#include "regatta/model/topo/graph.h"
#include "regatta/network/heal/internal/decide.h"
#include "regatta/network/heal/internal/flap_damper.h"
#include "regatta/network/heal/internal/path_losses.h"
#include "regatta/network/heal/internal/pending_news.h"
#include "regatta/network/heal/internal/retry.h"
#include "regatta/network/heal/internal/route_audit.h"
#include "regatta/network/heal/internal/switches.h"
#include "regatta/network/heal/internal/tables.h"

namespace regatta::heal {

enum class EventKind : std::uint8_t {
  kTakenOver,  // withdrawals found at the start; they are held as if seen now
  kWithdrawn,  // next hops were removed from routes
  kReturned,   // next hops were restored after a clean period
  kRefused,    // no other path leads there: the broken path stays in use
  // No route of a switch uses it, or all possible ones do: nothing to withdraw; or it is set up
  // wrongly, for people to correct.
  kHarmless,
  kFailed,     // a switch did not apply its change; the healer tries again. Once for each reason
  kRecovered,  // nothing of that fails any more
  kRepaired,   // routes that another program had changed are as decided again
  kRestarted,  // the process that healed was killed; another one goes on with its work
  kWarning,    // what the next process has to know cannot be kept, or is not known
};

struct Event {
  EventKind kind = EventKind::kWithdrawn;
  Seconds at;                               // os::monotonic_now() of the caller
  std::vector<EventReason> reasons;         // new faults, or faults that are no longer held
  std::vector<RouteChange> changes;         // made: kTakenOver, kWithdrawn, kReturned, kRepaired
  std::vector<RefusedWithdrawal> refusals;  // kRefused: of reasons
  // kFailed, kRecovered, kRepaired, kRestarted, kWarning, kHarmless without reasons
  std::string message;
  int count = 0;  // kRestarted: how often by now
};

// A killed healer leaves it to the next one.
struct HealerState {
  DamperState damper;
  std::vector<Fault> missing;  // kHop: next hops that routes lack, as far as switches were told so

  friend bool operator==(const HealerState&, const HealerState&) = default;
};

struct HealerOptions {
  Damping damping;
  bool dry_run = false;  // reports what it would do, and does nothing
};

// Not thread safe. Times never decrease.
class Healer {
 public:
  // `graph`, `paths` and `switches` must outlive this.
  Healer(const topo::Graph& graph, const FabricPaths& paths, Switches& switches,
         const HealerOptions& options);

  // Learns the installed routes and the lost carriers, and acts on them. Withdrawals of an earlier,
  // killed healer stay for a clean period.
  Result<std::vector<Event>> start(Seconds now) { return start(now, {}); }
  // The same with what the killed one knew, as by state(): withdrawals that this explains are held
  // for its reasons.
  Result<std::vector<Event>> start(Seconds now, const HealerState& before);

  // Accepts a sighting of `fault`. It counts from the next step() on. `is_probed`: probes meet the
  // fault, and their locator repeats it each second while they do.
  void report(const Fault& fault, const std::string& why, Seconds now, bool is_probed = false);
  // Accepts a sighting of something that is set up wrongly, such as two swapped cables. The healer
  // leaves it alone, and the next step() says so, once until it was not sighted for 10 s.
  void note(const std::string& text, Seconds now);

  // Accepts what probes lose on all links; others lose nothing. In the next step(), what is held is
  // returned before its clean period is over where it loses less than the paths left in use; of
  // what broke for the first time, also that which has missed its losses for Damping::proven(), or
  // which is probed, loses nothing and is not repeated.
  // `span`: the time that LinkLoss::now covers.
  void report_losses(std::span<const diag::LinkLoss> losses, Seconds now, Seconds span = kLossSpan);

  // Handles carrier changes, releases faults after their clean period, changes routes, and repairs
  // those that another program has changed. Call it when switches.fd() is readable, after report(),
  // and at next().
  Result<std::vector<Event>> step(Seconds now);
  std::optional<Seconds> next() const;

  const std::vector<HeldFault>& held() const { return damper_.held(); }
  // The next healer goes on with it.
  HealerState state() const;
  const Tables& tables() const { return tables_; }

 private:
  Status learn_installed();
  void take_out(std::span<const Fault> missing);
  std::vector<Fault> unexplained() const;
  void see(const Fault& fault, const std::string& why, Seconds now, bool lasts);
  Status apply_carriers(Seconds now);
  void renew_links_of(NodeId node, Seconds now);
  Status come_on(const CarrierChange& change);
  AppliedChanges apply(std::vector<RouteChange> changes, Seconds now, std::vector<Event>& events);
  void act(std::vector<HeldFault> released, Seconds now, std::vector<Event>& events);
  Decision decide_now(Seconds now, std::vector<HeldFault>& released);
  bool may_return(const HeldFault& held, const CostlyFault& costly) const;
  bool is_echo(const Fault& fault, Seconds now);
  bool is_unblamed(const HeldFault& held, Seconds now) const;
  std::vector<HeldFault> release_proven(Seconds now);
  void report_failure(const Status& status, Seconds now, std::vector<Event>& events);
  bool can_audit() const { return !dry_run_ && !retry_.due() && switches_.reads_installed(); }
  void audit(Seconds now, std::vector<Event>& events);
  void report_refusals(const Decision& decision, Seconds now, std::vector<Event>& events);

  const topo::Graph& graph_;
  Switches& switches_;
  bool dry_run_;
  FlapDamper damper_;
  const FabricPaths& paths_;
  Tables tables_;
  RouteAudit audit_;
  PathLosses losses_;
  PendingNews news_;
  Retry retry_;                           // of learning the installed routes, and of `undone_`
  std::vector<RouteChange> undone_;       // as some switch was told in vain
  std::map<std::string, Seconds> noted_;  // texts: when they were sighted last
  std::vector<std::string> new_notes_;
  std::vector<std::pair<bool, bool>> is_off_;  // per link: its ends a and b
  std::vector<Fault> refused_;                 // already reported
  struct EarlyReturn {
    Fault fault;
    Seconds at;
  };
  std::vector<EarlyReturn> returned_early_;  // of late
  bool has_new_losses_ = false;
  bool is_due_ = false;
  bool is_trying_ = false;  // this step() is a try
};

}  // namespace regatta::heal
