#include "regatta/network/heal/internal/flap_damper.h"

#include <algorithm>
#include <cmath>

namespace regatta::heal {

HeldFault* FlapDamper::find(const Fault& fault) {
  const auto found =
      std::ranges::find_if(held_, [&](const HeldFault& held) { return held.fault.is_at(fault); });
  return found == held_.end() ? nullptr : &*found;
}

// Also counts the relapse, and forgets those places that behaved long enough.
Seconds FlapDamper::clean_period(const Fault& fault, Seconds now) {
  const auto relapses_left = [&](const Record& record) {
    const double good_times = std::floor((now - record.released) / damping_.forget);
    return static_cast<int>(std::max(-1.0, record.relapses - good_times));
  };
  std::erase_if(records_, [&](const Record& record) { return relapses_left(record) < 0; });
  const auto record =
      std::ranges::find_if(records_, [&](const Record& one) { return one.fault.is_at(fault); });
  if (record == records_.end()) {
    records_.push_back({fault, 0, now});
    return damping_.clean;
  }
  record->relapses = relapses_left(*record) + 1;
  const double doubled = std::ldexp(damping_.clean.value, std::min(record->relapses, 60));
  // Relapses do not count once the period is at its maximum: forgetting would only take longer.
  if (doubled > damping_.clean_max.value) --record->relapses;
  return Seconds{std::min(doubled, damping_.clean_max.value)};
}

bool FlapDamper::bad(const Fault& fault, const std::string& why, Seconds now, bool lasts) {
  if (HeldFault* const held = find(fault)) {
    held->last_bad = now;
    held->lasts = held->lasts || lasts;
    if (fault.harm <= held->fault.harm) return false;
    held->fault.harm = fault.harm;
    held->why = why;
    return true;
  }
  held_.push_back({fault, why, now, now, lasts, clean_period(fault, now)});
  return true;
}

void FlapDamper::good(const Fault& fault, Seconds now) {
  HeldFault* const held = find(fault);
  if (held == nullptr || !held->lasts) return;
  held->lasts = false;
  held->last_bad = now;
}

std::vector<HeldFault> FlapDamper::release(Seconds now) {
  const auto is_held = [&](const HeldFault& held) {
    return held.lasts || now < held.last_bad + held.clean;
  };
  std::vector<HeldFault> over;
  for (const HeldFault& held : held_) {
    if (is_held(held)) continue;
    over.push_back(held);
    for (Record& record : records_)
      if (record.fault.is_at(held.fault)) record.released = now;
  }
  std::erase_if(held_, [&](const HeldFault& held) { return !is_held(held); });
  return over;
}

void FlapDamper::release_early(const Fault& fault, Seconds now) {
  const HeldFault* const found = find(fault);
  if (found == nullptr) return;
  for (Record& record : records_) {
    if (!record.fault.is_at(fault)) continue;
    if (found->since == now) record.relapses = std::max(0, record.relapses - 1);
    record.released = now;
  }
  std::erase_if(held_, [&](const HeldFault& held) { return held.fault.is_at(fault); });
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
