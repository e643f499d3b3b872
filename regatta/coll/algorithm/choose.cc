#include "regatta/coll/algorithm/choose.h"

#include <cstddef>

#include "regatta/coll/algorithm/all_to_all.h"
#include "regatta/coll/algorithm/direct.h"
#include "regatta/coll/algorithm/hierarchical.h"
#include "regatta/coll/algorithm/ring.h"
#include "regatta/coll/algorithm/rooted.h"
#include "regatta/cost/collective.h"

namespace regatta::coll {
namespace {

// Where steps decide, not bytes: what is taken without a measurement.
constexpr auto kSmallBytes = static_cast<std::size_t>(cost::kSmallMessageBytes);
// Longer vectors are not sent whole in every step, whatever a measurement of shorter ones said.
constexpr std::size_t kDoublingMax = std::size_t{1} << 20;
// What one rank may hold of the others at the same time.
constexpr std::size_t kExchangeMax = std::size_t{256} << 10;
constexpr std::size_t kDirectMax = std::size_t{4} << 20;

bool is_small(std::size_t bytes) {
  return bytes <= kSmallBytes;
}

std::size_t times_others(std::size_t bytes, int ranks) {
  return bytes * static_cast<std::size_t>(ranks - 1);
}

void build_all_reduce(Schedule& schedule, const Plan& plan, Algorithm algorithm,
                      const Buffers& buffers) {
  switch (algorithm) {
    case Algorithm::kExchange:
      return exchange_all_reduce(schedule, plan.place, buffers);
    case Algorithm::kDoubling:
      return doubling_all_reduce(schedule, plan.place, buffers);
    case Algorithm::kHierarchical:
      return hierarchical_all_reduce(schedule, plan.place, buffers, *plan.grid);
    default:
      return ring_all_reduce(schedule, plan.place, buffers);
  }
}

// What is left of a collective of one rank.
void copy_alone(Schedule& schedule, const Buffers& buffers) {
  if (buffers.in == nullptr || buffers.in == buffers.out) return;
  schedule.add(
      {.kind = StepKind::kCopy, .dst = buffers.out, .src = buffers.in, .bytes = buffers.bytes()});
}

}  // namespace

std::vector<Algorithm> algorithms_for(CallKind kind, std::size_t bytes, int ranks, bool has_grid) {
  std::vector<Algorithm> algorithms;
  const auto add = [&](Algorithm algorithm, bool is_fit = true) {
    if (is_fit) algorithms.push_back(algorithm);
  };
  switch (kind) {
    case CallKind::kBarrier:
      break;
    case CallKind::kAllReduce:
      add(Algorithm::kExchange, times_others(bytes, ranks) <= kExchangeMax);
      add(Algorithm::kDoubling, bytes <= kDoublingMax);
      add(Algorithm::kHierarchical, has_grid);
      add(Algorithm::kRing);
      break;
    case CallKind::kReduceScatter:
      add(Algorithm::kDirect, bytes <= kDirectMax);
      add(Algorithm::kRing);
      break;
    case CallKind::kAllGather:
      add(Algorithm::kDirect);
      add(Algorithm::kRing);
      break;
    case CallKind::kBroadcast:
      add(Algorithm::kTree);
      add(Algorithm::kRing);
      break;
    case CallKind::kReduce:
      add(Algorithm::kDirect, times_others(bytes, ranks) <= kDirectMax);
      add(Algorithm::kRing);
      break;
    case CallKind::kGather:
    case CallKind::kScatter:
      add(Algorithm::kDirect);
      break;
    case CallKind::kAllToAll:
      add(Algorithm::kPairwise);
      break;
  }
  return algorithms;
}

Algorithm usual_algorithm(CallKind kind, std::size_t bytes, int ranks, bool has_grid) {
  switch (kind) {
    case CallKind::kAllReduce:
      if (!is_small(bytes)) return has_grid ? Algorithm::kHierarchical : Algorithm::kRing;
      return times_others(bytes, ranks) <= kSmallBytes ? Algorithm::kExchange
                                                       : Algorithm::kDoubling;
    case CallKind::kBroadcast:
      return is_small(bytes) ? Algorithm::kTree : Algorithm::kRing;
    case CallKind::kReduceScatter:
    case CallKind::kAllGather:
    case CallKind::kReduce:
      return is_small(bytes) ? Algorithm::kDirect : Algorithm::kRing;
    case CallKind::kGather:
    case CallKind::kScatter:
      return Algorithm::kDirect;
    case CallKind::kAllToAll:
      return Algorithm::kPairwise;
    case CallKind::kBarrier:
      break;
  }
  return Algorithm::kAutomatic;
}

std::size_t chunk_bytes_of(Algorithm algorithm, CallKind kind, std::size_t bytes, int ranks) {
  (void)algorithm, (void)kind, (void)bytes, (void)ranks;
  return 0;
}

void build_schedule(Schedule& schedule, const Plan& plan, const Call& call) {
  schedule.reduction = call.reduction;
  const std::size_t element_bytes = size_of(call.reduction.type);
  const Buffers buffers{call.in, call.out, call.bytes / element_bytes, element_bytes};
  const Place& place = plan.place;
  if (call.kind == CallKind::kBarrier) return dissemination_barrier(schedule, place);
  if (buffers.count == 0) return;
  if (place.world_size == 1) return copy_alone(schedule, buffers);
  Algorithm algorithm = plan.setting.algorithm;
  if (algorithm == Algorithm::kAutomatic)
    algorithm = usual_algorithm(call.kind, whole_bytes(call, place.world_size), place.world_size,
                                plan.grid != nullptr);
  const bool is_ring = algorithm == Algorithm::kRing;
  switch (call.kind) {
    case CallKind::kBarrier:
      return;
    case CallKind::kAllReduce:
      return build_all_reduce(schedule, plan, algorithm, buffers);
    case CallKind::kReduceScatter:
      return is_ring ? ring_reduce_scatter(schedule, place, buffers)
                     : direct_reduce_scatter(schedule, place, buffers);
    case CallKind::kAllGather:
      return is_ring ? ring_all_gather(schedule, place, buffers)
                     : direct_all_gather(schedule, place, buffers);
    case CallKind::kBroadcast:
      return is_ring ? chain_broadcast(schedule, place, buffers, call.root)
                     : tree_broadcast(schedule, place, buffers, call.root);
    case CallKind::kReduce:
      return is_ring ? chain_reduce(schedule, place, buffers, call.root)
                     : direct_reduce(schedule, place, buffers, call.root);
    case CallKind::kGather:
      return direct_gather(schedule, place, buffers, call.root);
    case CallKind::kScatter:
      return direct_scatter(schedule, place, buffers, call.root);
    case CallKind::kAllToAll:
      return pairwise_all_to_all(schedule, place, buffers);
  }
}

}  // namespace regatta::coll
