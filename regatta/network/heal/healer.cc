#include "regatta/network/heal/healer.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

#include <fmt/core.h>

#include "regatta/base/core/text.h"
#include "regatta/network/fabric/routes.h"

namespace regatta::heal {
namespace {

constexpr Seconds kRepeatedWithin{1.2};  // what lasts; each second, and a delay
constexpr Seconds kNamedWithin{10};      // of a loss; also what is named once more
// From the last loss to the last sighting of a locator: its clean time, which begins anew while
// other losses look like it, and a report each second.
constexpr Seconds kLocatorHolds{10};
constexpr Seconds kLossDelay{0.2};  // from a loss to the last report in which it is new
constexpr Seconds kNoteForgotten{10};
constexpr std::size_t kNotesMost = 100;

std::array<Fault, 2> both_directions(LinkId link) {
  const std::uint32_t forward = fabric::number_of({link, true});
  return {Fault{Place::kLink, forward, {}, Harm::kNoCarrier},
          Fault{Place::kLink, forward + 1, {}, Harm::kNoCarrier}};
}

// "another program changed the routes leaf0 to leaf2 (as boot); they are restored".
std::string alteration_text(const topo::Graph& graph, std::span<const AlteredRoute> altered) {
  std::vector<std::string> routes;
  std::vector<std::string> programs;
  for (const AlteredRoute& one : altered) {
    routes.push_back(fmt::format("{} to {}", graph.nodes[one.repair.node.index()].name,
                                 graph.nodes[one.repair.leaf.index()].name));
    std::string program = one.protocol == 0 ? "removed" : "as " + protocol_name(one.protocol);
    if (std::ranges::find(programs, program) == programs.end())
      programs.push_back(std::move(program));
  }
  constexpr std::size_t kNamed = 4;
  return fmt::format("another program changed the routes {} ({}); they are restored",
                     shortened_list(std::move(routes), kNamed), join(programs, ", "));
}

}  // namespace

Healer::Healer(const topo::Graph& graph, const FabricPaths& paths, Switches& switches,
               const HealerOptions& options)
    : graph_(graph),
      switches_(switches),
      dry_run_(options.dry_run),
      damper_(options.damping),
      paths_(paths),
      tables_(paths),
      losses_(paths),
      news_(paths),
      is_off_(graph.links.size()) {}

std::optional<Seconds> Healer::next() const {
  std::optional<Seconds> first;
  const auto add = [&first](const std::optional<Seconds>& due) {
    if (due && (!first || *due < *first)) first = due;
  };
  add(damper_.next());
  add(retry_.due());
  if (can_audit()) add(audit_.next());
  return first;
}

Status Healer::learn_installed() {
  REGATTA_TRY(installed, switches_.installed());
  for (Installed& one : installed)
    tables_.set(one.node, one.leaf, std::move(one.parts));
  return {};
}

// Missing next hops that the held faults do not take away.
std::vector<Fault> Healer::unexplained() const {
  std::vector<Fault> missing = tables_.missing();
  const Decision decision = decide(paths_, damper_.faults());
  std::erase_if(missing, [&](const Fault& hop) {
    return std::ranges::any_of(decision.withdrawals, [&](const Withdrawal& one) {
      return one.node == paths_.start_of[hop.link] && one.leaf == hop.node &&
             std::ranges::find(one.left, hop.link) == one.left.end();
    });
  });
  return missing;
}

// For switches that do not tell what is installed; what they were told in vain is not there.
void Healer::take_out(std::span<const Fault> missing) {
  for (const Fault& hop : missing) {
    const NodeId node = paths_.start_of[hop.link];
    std::vector<std::uint32_t> left = hops_of(tables_.parts(node, hop.node));
    std::erase(left, hop.link);
    if (!left.empty()) tables_.set(node, hop.node, even_parts(left));
  }
}

Result<std::vector<Event>> Healer::start(Seconds now, const HealerState& before) {
  REGATTA_TRY(installed, switches_.installed());
  damper_.restore(before.damper, now);
  if (!switches_.reads_installed()) take_out(before.missing);
  std::vector<Event> events;
  Event taken{EventKind::kTakenOver, now, {}, {}, {}, {}};
  for (Installed& one : installed) {
    const auto all = paths_.routes.next_hops(one.node, one.leaf);
    RouteChange change{one.node, one.leaf, one.parts, {}, {}};
    const auto has = hops_of(one.parts);
    for (const std::uint32_t hop : all)
      if (std::ranges::find(has, hop) == has.end()) change.withdrawn.push_back(hop);
    // A route that is not there at all was lost, not withdrawn.
    if (!one.parts.empty() && !change.withdrawn.empty()) taken.changes.push_back(change);
    tables_.set(one.node, one.leaf, std::move(one.parts));
  }
  for (Fault fault : unexplained()) {
    // How much harm it did is not known: what is seen now counts for more.
    fault.harm = Harm::kLoss;
    if (hops_of(tables_.parts(paths_.start_of[fault.link], fault.node)).empty()) continue;
    const std::string why = "withdrawn by whoever healed before";
    damper_.bad(fault, why, now, false);
    taken.reasons.push_back({fault, why, damper_.held().back().clean});
  }
  const bool all_explained = taken.reasons.empty() && !before.damper.held.empty();
  if (!taken.changes.empty() && !all_explained) events.push_back(std::move(taken));
  is_due_ = true;
  REGATTA_TRY(more, step(now));
  events.insert(events.end(), more.begin(), more.end());
  return events;
}

// A wider verdict may replace those on single links although no route avoids the whole switch: the
// links stay held as long as it is reported.
void Healer::renew_links_of(NodeId node, Seconds now) {
  const std::vector<HeldFault> held = damper_.held();
  for (const HeldFault& one : held) {
    const bool is_inside =
        one.fault.place != Place::kSwitch &&
        (paths_.start_of[one.fault.link] == node || paths_.end_of[one.fault.link] == node);
    if (is_inside) static_cast<void>(damper_.bad(one.fault, one.why, now, false));
  }
}

void Healer::report(const Fault& fault, const std::string& why, Seconds now, bool is_probed) {
  if (is_echo(fault, now)) return;
  if (fault.place == Place::kSwitch) renew_links_of(fault.node, now);
  see(fault, why, now, false);
  if (is_probed) damper_.mark_probed(fault);
}

void Healer::see(const Fault& fault, const std::string& why, Seconds now, bool lasts) {
  const std::vector<HeldFault>& held = damper_.held();
  const auto is_there = [&](const HeldFault& one) { return one.fault.is_at(fault); };
  const bool is_known = std::ranges::any_of(held, is_there);
  if (!damper_.bad(fault, why, now, lasts)) return;
  is_due_ = true;
  const HeldFault& one = *std::ranges::find_if(held, is_there);
  news_.add_broken({one.fault, one.why, one.clean}, is_known);
}

void Healer::report_losses(std::span<const diag::LinkLoss> losses, Seconds now, Seconds span) {
  losses_.set(losses, now, span);
  has_new_losses_ = losses_.is_lossy() && !damper_.held().empty();
  is_due_ = is_due_ || has_new_losses_;
}

// Only where it loses far less than the paths in use, and is no black hole any more unless they
// are. Probes tell that only of what they meet. Other paths across a switch may lose more.
bool Healer::may_return(const HeldFault& held, const CostlyFault& costly) const {
  constexpr double kFarLess = 0.5;
  constexpr double kNoBlackHole = 0.1;
  constexpr double kBlackHole = 0.9;
  const double most = held.fault.harm == Harm::kLoss ? 1 : kNoBlackHole;
  const double bearable = costly.in_use >= kBlackHole ? kBlackHole * costly.in_use
                                                      : std::min(most, kFarLess * costly.in_use);
  const double if_used =
      held.fault.place == Place::kSwitch ? costly.if_used : losses_.if_used(held.fault);
  if (held.lasts || if_used > bearable) return false;
  const bool is_taken_over = held.fault.place == Place::kHop && held.last_bad == held.since;
  return is_taken_over || held.fault.harm == Harm::kNoCarrier || held.is_probed || held.was_lossy ||
         losses_.has_lost_since(held.fault, held.since - kNamedWithin);
}

HealerState Healer::state() const {
  HealerState state{damper_.state(), tables_.missing()};
  for (HeldFault& held : state.damper.held)
    held.was_lossy =
        held.was_lossy || losses_.has_lost_since(held.fault, held.since - kNamedWithin);
  return state;
}

// Whether it repeats, for the clean time of a locator, what was seen before an early return.
bool Healer::is_echo(const Fault& fault, Seconds now) {
  std::erase_if(returned_early_,
                [&](const EarlyReturn& one) { return now - one.at > kLocatorHolds; });
  return std::ranges::any_of(returned_early_, [&](const EarlyReturn& one) {
    return one.fault.is_at(fault) && !losses_.has_lost_since(fault, one.at + kLossDelay);
  });
}

Decision Healer::decide_now(Seconds now, std::vector<HeldFault>& released) {
  Decision decision = decide(paths_, damper_.faults(), has_new_losses_ ? &losses_ : nullptr);
  std::vector<HeldFault> returned;
  for (;;) {
    const std::vector<HeldFault> held = damper_.held();
    const std::size_t before = returned.size();
    for (const CostlyFault& costly : decision.costly) {
      const HeldFault& one = held[costly.fault];
      if (!may_return(one, costly)) continue;
      damper_.release_early(one.fault, now);
      returned_early_.push_back({one.fault, now});
      returned.push_back(one);
    }
    if (returned.size() == before) break;
    decision = decide(paths_, damper_.faults(), &losses_);
  }
  std::ranges::move(returned, std::back_inserter(released));
  return decision;
}

// Whether its verdict is not repeated, and probes, which meet the fault, lose nothing there: it was
// wrong, or hit what no other probe met. Nothing tells how much cables of servers lose.
bool Healer::is_unblamed(const HeldFault& held, Seconds now) const {
  const bool is_repeated = now - held.last_bad < kRepeatedWithin;
  const bool is_of_server =
      held.fault.place == Place::kLink && graph_.links[held.fault.link / 2].a_nic >= 0;
  return held.is_probed && !is_repeated && !is_of_server &&
         losses_.is_unblamed(held.fault, held.since - kNamedWithin, now);
}

std::vector<HeldFault> Healer::release_proven(Seconds now) {
  std::vector<HeldFault> proven;
  for (const HeldFault& one : damper_.held()) {
    const bool is_proven =
        !one.lasts && !one.is_relapse &&
        (is_unblamed(one, now) ||
         losses_.is_proven_clean(one.fault, one.since, damper_.damping().proven(), now));
    if (is_proven) proven.push_back(one);
  }
  for (const HeldFault& one : proven) {
    damper_.release_proven(one.fault, now);
    returned_early_.push_back({one.fault, now});
  }
  return proven;
}

void Healer::note(const std::string& text, Seconds now) {
  std::erase_if(noted_, [&](const auto& one) { return now - one.second > kNoteForgotten; });
  if (noted_.size() >= kNotesMost && !noted_.contains(text)) return;
  if (noted_.insert_or_assign(text, now).second) new_notes_.push_back(text);
}

// The kernel forgot routes through an interface that was off.
Status Healer::come_on(const CarrierChange& change) {
  const bool forward = graph_.links[change.link.index()].a == change.node;
  const auto routes = tables_.through(change.node, fabric::number_of({change.link, forward}));
  if (routes.empty() || dry_run_) return {};
  return first_failure(switches_.apply(routes));
}

Status Healer::apply_carriers(Seconds now) {
  REGATTA_TRY(changes, switches_.carriers());
  Status status;
  for (const CarrierChange& change : changes) {
    auto& ends = is_off_[change.link.index()];
    const bool was_off = ends.first || ends.second;
    (graph_.links[change.link.index()].a == change.node ? ends.first : ends.second) = !change.up;
    const bool is_off = ends.first || ends.second;
    if (change.up) {
      const Status on = come_on(change);
      if (status && !on) status = on;
    }
    if (is_off == was_off) continue;
    for (const Fault& fault : both_directions(change.link)) {
      if (is_off) {
        see(fault, "no carrier", now, true);
      } else {
        damper_.good(fault, now);
      }
    }
  }
  return status;
}

void Healer::report_refusals(const Decision& decision, Seconds now, std::vector<Event>& events) {
  const std::vector<Fault> faults = damper_.faults();
  Event event{EventKind::kRefused, now, {}, {}, {}, {}};
  std::vector<Fault> refused;
  for (const RefusedWithdrawal& refusal : decision.refusals) {
    const Fault& fault = faults[refusal.fault];
    if (std::ranges::find(refused, fault) == refused.end()) refused.push_back(fault);
    if (std::ranges::find(refused_, fault) == refused_.end()) event.refusals.push_back(refusal);
  }
  for (const HeldFault& held : damper_.held()) {
    const bool is_new = std::ranges::find(refused, held.fault) != refused.end() &&
                        std::ranges::find(refused_, held.fault) == refused_.end();
    if (is_new) event.reasons.push_back({held.fault, held.why, held.clean});
  }
  refused_ = std::move(refused);
  if (!event.reasons.empty()) events.push_back(std::move(event));
}

// Those that switches did not make stay to be made, also where nobody can tell what is installed:
// at the next try, whatever else happens before.
AppliedChanges Healer::apply(std::vector<RouteChange> changes, Seconds now,
                             std::vector<Event>& events) {
  AppliedChanges out;
  if (retry_.due() && !is_trying_) {
    const auto waits = std::ranges::stable_partition(changes, [&](const RouteChange& change) {
      return std::ranges::find(undone_, change) == undone_.end();
    });
    std::ranges::move(waits, std::back_inserter(out.undone));
    changes.erase(waits.begin(), waits.end());
  }
  std::vector<Status> made(changes.size());
  if (!changes.empty() && !dry_run_) made = switches_.apply(changes);
  for (std::size_t i = 0; i < changes.size(); ++i)
    (made[i] ? out.done : out.undone).push_back(std::move(changes[i]));
  tables_.apply(out.done);
  undone_ = out.undone;
  report_failure(first_failure(made), now, events);
  return out;
}

void Healer::act(std::vector<HeldFault> released, Seconds now, std::vector<Event>& events) {
  const Decision decision = decide_now(now, released);
  has_new_losses_ = false;
  for (const HeldFault& held : released)
    news_.add_working({held.fault, held.why, held.clean});
  const AppliedChanges changes = apply(tables_.changes(decision), now, events);
  PendingNews::Due due = news_.take(changes);
  Event out{EventKind::kWithdrawn, now, std::move(due.broken), {}, {}, {}};
  Event back{EventKind::kReturned, now, std::move(due.working), {}, {}, {}};
  // Without news nothing breaks: what a route gets back then was missing for another reason.
  // And where all paths are equally broken now, those withdrawn before are as good as the others.
  const bool takes_nothing = std::ranges::all_of(
      changes.done, [](const RouteChange& change) { return change.withdrawn.empty(); });
  const bool gives_back = !back.reasons.empty() || out.reasons.empty() || takes_nothing;
  for (const RouteChange& change : changes.done)
    (change.withdrawn.empty() && gives_back ? back : out).changes.push_back(change);
  if (out.changes.empty()) out.kind = EventKind::kHarmless;
  for (Event* const event : {&back, &out})
    if (!event->reasons.empty() || !event->changes.empty()) events.push_back(std::move(*event));
  report_refusals(decision, now, events);
}

void Healer::audit(Seconds now, std::vector<Event>& events) {
  if (!can_audit()) return;
  if (switches_.consume_foreign_change()) audit_.read_soon(now);
  if (now < audit_.next()) return;
  const auto installed = switches_.installed();
  if (!installed) return report_failure(installed.error(), now, events);
  const std::vector<AlteredRoute> altered = audit_.compare(tables_, *installed, now);
  if (altered.empty()) return;
  Event event{EventKind::kRepaired, now, {}, {}, {}, alteration_text(graph_, altered)};
  for (const AlteredRoute& one : altered)
    event.changes.push_back(one.repair);
  const std::vector<Status> made = switches_.apply(event.changes);
  std::vector<RouteChange> repaired;
  for (std::size_t i = 0; i < made.size(); ++i)
    if (made[i]) repaired.push_back(std::move(event.changes[i]));
  event.changes = std::move(repaired);
  if (!event.changes.empty()) events.push_back(std::move(event));
  report_failure(first_failure(made), now, events);
}

// And tries again, less often when that fails too.
void Healer::report_failure(const Status& status, Seconds now, std::vector<Event>& events) {
  if (status || !retry_.fail(status.error().message, now)) return;
  events.push_back({EventKind::kFailed, now, {}, {}, {}, status.error().message});
}

Result<std::vector<Event>> Healer::step(Seconds now) {
  std::vector<Event> events;
  is_trying_ = retry_.begin(now);
  report_failure(apply_carriers(now), now, events);
  if (is_trying_) {
    const Status learnt = learn_installed();
    if (learnt) is_due_ = true;
    report_failure(learnt, now, events);
  }
  std::vector<HeldFault> released = damper_.release(now);
  std::ranges::move(release_proven(now), std::back_inserter(released));
  if (is_due_ || !released.empty()) {
    is_due_ = false;
    act(std::move(released), now, events);
  }
  for (std::string& text : std::exchange(new_notes_, {}))
    events.push_back({EventKind::kHarmless, now, {}, {}, {}, std::move(text)});
  audit(now, events);
  if (const auto success = retry_.end()) {
    std::string text =
        fmt::format("try {} succeeded; it failed with: {}", success->tries, success->failure);
    events.push_back({EventKind::kRecovered, now, {}, {}, {}, std::move(text)});
  }
  return events;
}

}  // namespace regatta::heal
