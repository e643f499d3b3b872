// coll/algorithm/choose.h: which algorithm a call takes. A function of its arguments alone, so all
// ranks choose the same one.
#pragma once

#include <cstddef>

#include "regatta/coll/algorithm/place.h"
#include "regatta/coll/call.h"
#include "regatta/coll/schedule.h"

namespace regatta::coll {

// Up to this many bytes in flight per rank one step to everyone beats the ring; the doubling form
// takes vectors up to it.
inline constexpr std::size_t kSmallBytes = std::size_t{16} << 10;

enum class AllReduceAlgorithm { kExchange, kDoubling, kRing };
// bytes: of the whole vector. Exchange while (p-1) * bytes <= kSmallBytes, doubling while
// bytes <= kSmallBytes, else ring.
AllReduceAlgorithm choose_all_reduce(std::size_t bytes, int world_size);

// Writes the schedule of one rank, schedule.reduction included; one rank alone copies, nothing to
// do gives no steps.
void build_schedule(Schedule& schedule, const Place& place, const Call& call);

}  // namespace regatta::coll
