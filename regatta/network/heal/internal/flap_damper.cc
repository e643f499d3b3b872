#include "regatta/network/heal/internal/flap_damper.h"

#include <algorithm>
#include <cmath>

namespace regatta::heal {

HeldFault* FlapDamper::find(const Fault& fault) {
  const auto found =
      std::ranges::find_if(held_, [&](const HeldFault& held) { return held.fault.is_at(fault); });
  return found == held_.end() ? nullptr : &*found;
}

// Counts the relapse, and forgets those places that behaved long enough.
RelapseRecord& FlapDamper::seen(const Fault& fault, Seconds now) {
  const auto relapses_left = [&](const RelapseRecord& record) {
    const double good_times = std::floor((now - record.released) / damping_.forget);
    return static_cast<int>(std::max(-1.0, record.relapses - good_times));
  };
  std::erase_if(records_, [&](const RelapseRecord& record) { return relapses_left(record) < 0; });
  const auto record = std::ranges::find_if(
      records_, [&](const RelapseRecord& one) { return one.fault.is_at(fault); });
  if (record == records_.end()) {
    records_.push_back({.fault = fault, .relapses = 0, .released = now});
    return records_.back();
  }
  record->relapses = relapses_left(*record) + (record->is_interrupted ? 0 : 1);
  record->is_interrupted = false;
  // Relapses do not count once the period is at its maximum: forgetting would only take longer.
  const bool is_at_most = std::ldexp(damping_.clean.value, std::min(record->relapses - 1, 60)) >=
                          damping_.clean_max.value;
  if (record->relapses > 0 && is_at_most) --record->relapses;
  return *record;
}

Seconds FlapDamper::clean_period(const RelapseRecord& record) const {
  const double doubled = std::ldexp(damping_.clean.value, std::min(record.relapses, 60));
  return Seconds{std::min(doubled, damping_.clean_max.value)};
}

bool FlapDamper::bad(const Fault& fault, const std::string& why, Seconds now, bool lasts) {
  if (HeldFault* const held = find(fault)) {
    held->last_bad = now;
    // Its carrier has come back, and still it is bad.
    if (!lasts && !held->lasts) held->clean = std::max(held->clean, damping_.clean);
    held->lasts = held->lasts || lasts;
    if (fault.harm <= held->fault.harm) return false;
    held->fault.harm = fault.harm;
    held->why = why;
    return true;
  }
  const RelapseRecord& record = seen(fault, now);
  held_.push_back({fault, why, now, now, lasts, clean_period(record), record.relapses > 0});
  return true;
}

void FlapDamper::mark_probed(const Fault& fault) {
  if (HeldFault* const held = find(fault)) held->is_probed = true;
}

void FlapDamper::restore(const DamperState& before, Seconds now) {
  held_ = before.held;
  records_ = before.records;
  for (HeldFault& held : held_) {
    held.last_bad = now;
    // The reporter says it again where it is still bad.
    held.lasts = false;
  }
}

void FlapDamper::good(const Fault& fault, Seconds now) {
  HeldFault* const held = find(fault);
  if (held == nullptr || !held->lasts) return;
  held->lasts = false;
  held->last_bad = now;
  if (!held->is_relapse) held->clean = damping_.proven();
}

std::vector<HeldFault> FlapDamper::release(Seconds now) {
  const auto is_held = [&](const HeldFault& held) {
    return held.lasts || now < held.last_bad + held.clean;
  };
  std::vector<HeldFault> over;
  for (const HeldFault& held : held_) {
    if (is_held(held)) continue;
    over.push_back(held);
    for (RelapseRecord& record : records_)
      if (record.fault.is_at(held.fault)) record.released = now;
  }
  std::erase_if(held_, [&](const HeldFault& held) { return !is_held(held); });
  return over;
}

void FlapDamper::release_proven(const Fault& fault, Seconds now) {
  end(fault, now, false);
}

void FlapDamper::release_early(const Fault& fault, Seconds now) {
  end(fault, now, true);
}

void FlapDamper::end(const Fault& fault, Seconds now, bool is_interrupted) {
  const auto is_there = [&](const auto& one) { return one.fault.is_at(fault); };
  for (RelapseRecord& record : records_) {
    if (!is_there(record)) continue;
    record.released = now;
    record.is_interrupted = is_interrupted;
  }
  std::erase_if(held_, is_there);
}

std::vector<Fault> FlapDamper::faults() const {
  std::vector<Fault> faults;
  for (const HeldFault& held : held_)
    faults.push_back(held.fault);
  return faults;
}

std::optional<Seconds> FlapDamper::next() const {
  std::optional<Seconds> first;
  for (const HeldFault& held : held_) {
    if (held.lasts) continue;
    const Seconds due = held.last_bad + held.clean;
    if (!first || due < *first) first = due;
  }
  return first;
}

}  // namespace regatta::heal
