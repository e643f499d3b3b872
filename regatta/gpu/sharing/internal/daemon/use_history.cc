#include "regatta/gpu/sharing/internal/daemon/use_history.h"

#include <algorithm>

#include "regatta/base/core/ids.h"

namespace regatta::sharing {

void UseHistory::add(int tenant, std::uint64_t begin_ns, std::uint64_t end_ns) {
  if (end_ns <= begin_ns) return;
  uses_[as_index(tenant)].total += end_ns - begin_ns;
  // Only the last part of a long turn still counts.
  const std::uint64_t kept = (kSlots - 1) * kSlotNs;
  std::uint64_t at = end_ns - begin_ns > kept ? end_ns - kept : begin_ns;
  while (at < end_ns) {
    const std::uint64_t number = at / kSlotNs;
    const std::uint64_t until = std::min(end_ns, (number + 1) * kSlotNs);
    add_to_slot(tenant, number, until - at);
    at = until;
  }
}

void UseHistory::count(int tenant, std::uint64_t units, std::uint64_t now_ns) {
  uses_[as_index(tenant)].total += units;
  add_to_slot(tenant, now_ns / kSlotNs, units);
}

void UseHistory::add_to_slot(int tenant, std::uint64_t number, std::uint64_t used) {
  Slot& slot = uses_[as_index(tenant)].slots[number % kSlots];
  if (slot.number != number) slot = {number, 0};
  slot.used += used;
}

std::uint64_t UseHistory::last_second(int tenant, std::uint64_t now_ns) const {
  const std::uint64_t number = now_ns / kSlotNs;
  std::uint64_t used = 0;
  for (const Slot& slot : uses_[as_index(tenant)].slots) {
    if (slot.number < number && slot.number + 10 >= number) used += slot.used;
  }
  return used;
}

}  // namespace regatta::sharing
