// coll/algorithm/choose.h: which algorithm a call takes. A function of its arguments alone, so all
// ranks choose the same one.
#pragma once

#include <cstddef>

#include "regatta/coll/algorithm/place.h"
#include "regatta/coll/call.h"
#include "regatta/coll/schedule.h"
#include "regatta/cost/collective.h"
#include "regatta/cost/grid.h"

namespace regatta::coll {

// Up to this many bytes in flight per rank one step to everyone beats the ring; the doubling form
// takes vectors up to it.
inline constexpr auto kSmallBytes = static_cast<std::size_t>(cost::kSmallMessageBytes);

enum class AllReduceAlgorithm { kExchange, kDoubling, kRing };
// bytes: of the whole vector. Exchange while (p-1) * bytes <= kSmallBytes, doubling while
// bytes <= kSmallBytes, else ring, or hierarchical where there is a grid.
AllReduceAlgorithm choose_all_reduce(std::size_t bytes, int world_size);

// Writes the schedule of one rank, schedule.reduction included; one rank alone copies, nothing to
// do gives no steps. `grid`: how long vectors are reduced between servers, or null.
void build_schedule(Schedule& schedule, const Place& place, const Call& call,
                    const cost::Grid* grid);

}  // namespace regatta::coll
