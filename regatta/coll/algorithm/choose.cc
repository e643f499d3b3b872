#include "regatta/coll/algorithm/choose.h"

#include <cstddef>

#include "regatta/coll/algorithm/direct.h"
#include "regatta/coll/algorithm/ring.h"

namespace regatta::coll {
namespace {

// What is left of a collective of one rank.
void copy_alone(Schedule& schedule, const Buffers& buffers) {
  if (buffers.in == buffers.out) return;
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

void build_all_reduce(Schedule& schedule, const Place& place, const Buffers& buffers) {
  if (buffers.count == 0) return;
  if (place.world_size == 1) return copy_alone(schedule, buffers);
  switch (choose_all_reduce(buffers.bytes(), place.world_size)) {
    case AllReduceAlgorithm::kExchange:
      return exchange_all_reduce(schedule, place, buffers);
    case AllReduceAlgorithm::kDoubling:
      return doubling_all_reduce(schedule, place, buffers);
    case AllReduceAlgorithm::kRing:
      return ring_all_reduce(schedule, place, buffers);
  }
}

void build_reduce_scatter(Schedule& schedule, const Place& place, const Buffers& buffers) {
  if (buffers.count == 0) return;
  if (place.world_size == 1) return copy_alone(schedule, buffers);
  const std::size_t whole = buffers.bytes() * static_cast<std::size_t>(place.world_size);
  if (whole <= kSmallBytes) return direct_reduce_scatter(schedule, place, buffers);
  ring_reduce_scatter(schedule, place, buffers);
}

void build_all_gather(Schedule& schedule, const Place& place, const Buffers& buffers) {
  if (buffers.count == 0) return;
  if (place.world_size == 1) return copy_alone(schedule, buffers);
  const std::size_t whole = buffers.bytes() * static_cast<std::size_t>(place.world_size);
  if (whole <= kSmallBytes) return direct_all_gather(schedule, place, buffers);
  ring_all_gather(schedule, place, buffers);
}

void build_broadcast(Schedule& schedule, const Place& place, const Buffers& buffers, int root) {
  if (buffers.count == 0 || place.world_size == 1) return;
  if (buffers.bytes() <= kSmallBytes) return tree_broadcast(schedule, place, buffers, root);
  chain_broadcast(schedule, place, buffers, root);
}

}  // namespace regatta::coll
