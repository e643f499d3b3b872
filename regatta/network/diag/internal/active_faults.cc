#include "regatta/network/diag/internal/active_faults.h"

#include <algorithm>
#include <utility>

#include "regatta/base/core/ids.h"

namespace regatta::diag {

std::vector<KnownFault> ActiveFaults::known() const {
  std::vector<KnownFault> faults;
  for (std::size_t i = 0; i < verdicts_.size(); ++i)
    faults.push_back(
        {verdicts_[i].culprit, states_[i].is_settled, is_of_variant(verdicts_[i].symptom)});
  return faults;
}

std::vector<FaultVerdict> ActiveFaults::lasting() const {
  std::vector<FaultVerdict> faults;
  for (std::size_t i = 0; i < verdicts_.size(); ++i)
    if (states_[i].held_at >= updated_) faults.push_back(verdicts_[i]);
  return faults;
}

std::vector<Culprit> ActiveFaults::unconfirmed() const {
  std::vector<Culprit> culprits;
  for (const Unconfirmed& one : unconfirmed_)
    culprits.push_back(one.culprit);
  return culprits;
}

bool ActiveFaults::is_unconfirmed(const FaultVerdict& verdict, Seconds now) {
  if (verdict.symptom != Symptom::kSomeFlows || options_.confirmation_delay.value <= 0)
    return false;
  const auto found = std::ranges::find(unconfirmed_, verdict.culprit, &Unconfirmed::culprit);
  if (found == unconfirmed_.end()) {
    unconfirmed_.push_back({.culprit = verdict.culprit, .since = now, .held_at = now});
    return true;
  }
  found->held_at = now;
  return now - found->since < options_.confirmation_delay;
}

void ActiveFaults::update_one(FaultVerdict verdict, Seconds now, FaultChanges& changes) {
  verdict.at = now;
  const auto known = std::ranges::find(verdicts_, verdict.culprit, &FaultVerdict::culprit);
  if (known != verdicts_.end()) {
    State& state = at(states_, known - verdicts_.begin());
    state.held_at = now;
    if (!known->alternatives.empty() && verdict.alternatives.empty()) state.is_settled = true;
    verdict.since = known->since;
    verdict.at = known->at;
    if (verdict.symptom == state.reported) state.reported_at = now;
    if (now - state.reported_at >= options_.changes) {
      state.reported = verdict.symptom;
      state.reported_at = now;
      changes.changed.push_back(verdict);
    }
    *known = std::move(verdict);
  } else if (verdict.confidence >= options_.confidence && !is_unconfirmed(verdict, now)) {
    if (verdict.symptom == Symptom::kNoCarrier || is_misconfiguration(verdict.culprit))
      verdict.since = now;
    changes.begun.push_back(verdict);
    states_.push_back({.held_at = now, .reported = verdict.symptom, .reported_at = now});
    verdicts_.push_back(std::move(verdict));
  }
}

// A new fault replaces an old one with which it shares a link.
bool ActiveFaults::is_replaced(const FaultVerdict& old,
                               const std::vector<FaultVerdict>& begun) const {
  const auto old_links = links_to_avoid(graph_, old.culprit);
  return std::ranges::any_of(begun, [&](const FaultVerdict& verdict) {
    // A server that was silent and reports again was only busy.
    if (old.symptom == Symptom::kSilent && verdict.culprit == host_noise_culprit(old.culprit.node))
      return true;
    return std::ranges::any_of(links_to_avoid(graph_, verdict.culprit), [&](std::uint32_t link) {
      return std::ranges::find(old_links, link) != old_links.end();
    });
  });
}

void ActiveFaults::end_old(Seconds now, const IsObserved& is_observed, FaultChanges& changes) {
  for (std::size_t i = 0; i < verdicts_.size();) {
    State& state = states_[i];
    const bool is_found = state.held_at >= now;
    const bool has_successor = !is_found && is_replaced(verdicts_[i], changes.begun);
    // The clean time begins anew as long as nobody observes the fault.
    if (!is_found && is_observed && !is_observed(verdicts_[i])) state.held_at = now;
    const bool has_ended = has_successor || now - state.held_at > options_.clean_time;
    if (!has_ended) {
      ++i;
      continue;
    }
    changes.over.push_back(std::move(verdicts_[i]));
    verdicts_.erase(verdicts_.begin() + static_cast<std::ptrdiff_t>(i));
    states_.erase(states_.begin() + static_cast<std::ptrdiff_t>(i));
  }
}

void ActiveFaults::take_back(const std::vector<FaultVerdict>& begun) {
  for (const FaultVerdict& one : begun) {
    const auto found = std::ranges::find(verdicts_, one.culprit, &FaultVerdict::culprit);
    if (found == verdicts_.end()) continue;
    states_.erase(states_.begin() + (found - verdicts_.begin()));
    verdicts_.erase(found);
  }
}

FaultChanges ActiveFaults::update(std::vector<FaultVerdict> found, Seconds now,
                                  const IsObserved& is_observed) {
  FaultChanges changes;
  updated_ = now;
  for (FaultVerdict& verdict : found)
    update_one(std::move(verdict), now, changes);
  end_old(now, is_observed, changes);
  std::erase_if(unconfirmed_,
                [&](const Unconfirmed& one) { return now - one.held_at > options_.changes; });
  return changes;
}

}  // namespace regatta::diag
