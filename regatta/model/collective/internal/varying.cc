#include "regatta/model/collective/internal/varying.h"

#include <cstddef>

#include "regatta/model/collective/internal/all_to_all.h"
#include "regatta/model/collective/internal/direct.h"
#include "regatta/model/collective/internal/ordered.h"
#include "regatta/model/collective/internal/rank_parts.h"
#include "regatta/model/collective/internal/ring.h"
#include "regatta/model/cost/collective.h"

namespace regatta::collective {

void build_varying(CollectiveSchedule& schedule, const GroupPosition& self, const Call& call) {
  schedule.reduction = call.reduction;
  const std::size_t element_bytes = size_of(call.reduction.type);
  const RankParts give(call.parts->give);
  const RankParts take(call.parts->take);
  const bool gathers = call.kind == CallKind::kAllGatherV;
  std::size_t whole = 0;  // the same on all ranks, where the ends may differ
  for (const ByteRange& part : gathers ? call.parts->take : call.parts->give)
    whole += part.bytes;
  const bool is_small = whole <= static_cast<std::size_t>(cost::kSmallMessageBytes);
  Buffers buffers{call.in, call.out, 0, element_bytes};
  if (call.kind == CallKind::kAllToAllV || (gathers && is_small))
    return pairwise_all_to_all_v(schedule, self, buffers, give, take);
  buffers.count = give.bytes(self.rank) / element_bytes;
  if (self.world_size == 1)
    return pairwise_all_to_all_v(schedule, self, buffers, give, RankParts({{0, give.bytes(0)}}));
  if (gathers) return ring_all_gather_v(schedule, self, buffers, take);
  if (call.reduction.is_ordered) return ordered_reduce_scatter_v(schedule, self, buffers, give);
  return is_small ? direct_reduce_scatter_v(schedule, self, buffers, give)
                  : ring_reduce_scatter_v(schedule, self, buffers, give);
}

}  // namespace regatta::collective
