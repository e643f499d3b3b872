#include "regatta/coll/algorithm/choose.h"

#include <cstddef>

#include "regatta/coll/algorithm/all_to_all.h"
#include "regatta/coll/algorithm/direct.h"
#include "regatta/coll/algorithm/hierarchical.h"
#include "regatta/coll/algorithm/ring.h"
#include "regatta/coll/algorithm/rooted.h"

namespace regatta::coll {
namespace {

bool is_small(std::size_t bytes) {
  return bytes <= kSmallBytes;
}

void build_all_reduce(Schedule& schedule, const Place& place, const Buffers& buffers,
                      const cost::Grid* grid) {
  switch (choose_all_reduce(buffers.bytes(), place.world_size)) {
    case AllReduceAlgorithm::kExchange:
      return exchange_all_reduce(schedule, place, buffers);
    case AllReduceAlgorithm::kDoubling:
      return doubling_all_reduce(schedule, place, buffers);
    case AllReduceAlgorithm::kRing:
      return grid != nullptr ? hierarchical_all_reduce(schedule, place, buffers, *grid)
                             : ring_all_reduce(schedule, place, buffers);
  }
}

// What is left of a collective of one rank.
void copy_alone(Schedule& schedule, const Buffers& buffers) {
  if (buffers.in == nullptr || buffers.in == buffers.out) return;
  schedule.add(
      {.kind = StepKind::kCopy, .dst = buffers.out, .src = buffers.in, .bytes = buffers.bytes()});
}

}  // namespace

AllReduceAlgorithm choose_all_reduce(std::size_t bytes, int world_size) {
  if (bytes > kSmallBytes) return AllReduceAlgorithm::kRing;
  const auto others = static_cast<std::size_t>(world_size - 1);
  return bytes * others <= kSmallBytes ? AllReduceAlgorithm::kExchange
                                       : AllReduceAlgorithm::kDoubling;
}

void build_schedule(Schedule& schedule, const Place& place, const Call& call,
                    const cost::Grid* grid) {
  schedule.reduction = call.reduction;
  const std::size_t element_bytes = size_of(call.reduction.type);
  const Buffers buffers{call.in, call.out, call.bytes / element_bytes, element_bytes};
  if (call.kind == CallKind::kBarrier) return dissemination_barrier(schedule, place);
  if (buffers.count == 0) return;
  if (place.world_size == 1) return copy_alone(schedule, buffers);
  const bool small_whole = is_small(whole_bytes(call, place.world_size));
  switch (call.kind) {
    case CallKind::kBarrier:
      return;
    case CallKind::kAllReduce:
      return build_all_reduce(schedule, place, buffers, grid);
    case CallKind::kReduceScatter:
      return small_whole ? direct_reduce_scatter(schedule, place, buffers)
                         : ring_reduce_scatter(schedule, place, buffers);
    case CallKind::kAllGather:
      return small_whole ? direct_all_gather(schedule, place, buffers)
                         : ring_all_gather(schedule, place, buffers);
    case CallKind::kBroadcast:
      return small_whole ? tree_broadcast(schedule, place, buffers, call.root)
                         : chain_broadcast(schedule, place, buffers, call.root);
    case CallKind::kReduce:
      return small_whole ? direct_reduce(schedule, place, buffers, call.root)
                         : chain_reduce(schedule, place, buffers, call.root);
    case CallKind::kGather:
      return direct_gather(schedule, place, buffers, call.root);
    case CallKind::kScatter:
      return direct_scatter(schedule, place, buffers, call.root);
    case CallKind::kAllToAll:
      return pairwise_all_to_all(schedule, place, buffers);
  }
}

}  // namespace regatta::coll
