#include "regatta/model/collective/internal/choose.h"

#include <cstddef>

#include "regatta/model/collective/internal/all_to_all.h"
#include "regatta/model/collective/internal/bruck.h"
#include "regatta/model/collective/internal/direct.h"
#include "regatta/model/collective/internal/double_tree.h"
#include "regatta/model/collective/internal/halving.h"
#include "regatta/model/collective/internal/hierarchical.h"
#include "regatta/model/collective/internal/ordered.h"
#include "regatta/model/collective/internal/rail.h"
#include "regatta/model/collective/internal/ring.h"
#include "regatta/model/collective/internal/rooted.h"
#include "regatta/model/cost/collective.h"

namespace regatta::collective {
namespace {

// Where steps decide, not bytes: what is taken without a measurement.
constexpr auto kSmallBytes = static_cast<std::size_t>(cost::kSmallMessageBytes);
// Longer vectors are not sent whole in every step, whatever a measurement of shorter ones said.
constexpr std::size_t kDoublingMax = std::size_t{1} << 20;
// Bytes of other ranks that a rank may hold at the same time.
constexpr std::size_t kExchangeMax = std::size_t{256} << 10;
constexpr std::size_t kDirectMax = std::size_t{4} << 20;
// Forms that copy all that they send are for short vectors.
constexpr std::size_t kCopiedMax = std::size_t{1} << 20;

bool is_small(std::size_t bytes) {
  return bytes <= kSmallBytes;
}

std::size_t times_others(std::size_t bytes, int ranks) {
  return bytes * static_cast<std::size_t>(ranks - 1);
}

// Writes the schedule of one call; `algorithm` is one of those for its kind.
class Writer {
 public:
  Writer(CollectiveSchedule& schedule, const CollectivePlan& plan, Algorithm algorithm,
         const Buffers& buffers)
      : schedule_(schedule), plan_(plan), algorithm_(algorithm), buffers_(buffers) {
    ring_.piece_bytes = plan.setting.chunk_bytes;
    if (plan.setting.chunk_bytes > 0) tree_.chunk_bytes = plan.setting.chunk_bytes;
  }

  void all_reduce() {
    switch (algorithm_) {
      case Algorithm::kExchange:
        return exchange_all_reduce(schedule_, plan_.self, buffers_);
      case Algorithm::kDoubling:
        return doubling_all_reduce(schedule_, plan_.self, buffers_);
      case Algorithm::kHalving:
        return halving_doubling_all_reduce(schedule_, plan_.self, buffers_);
      case Algorithm::kDoubleTree:
        return double_tree_all_reduce(schedule_, plan_.self, buffers_, tree_);
      case Algorithm::kHierarchical:
        return hierarchical_all_reduce(schedule_, plan_.self, buffers_, *plan_.grid);
      default:
        return ring_all_reduce(schedule_, plan_.self, buffers_, ring_);
    }
  }
  void reduce_scatter() {
    switch (algorithm_) {
      case Algorithm::kDirect:
        return direct_reduce_scatter(schedule_, plan_.self, buffers_);
      case Algorithm::kHalving:
        return halving_reduce_scatter(schedule_, plan_.self, buffers_);
      default:
        return ring_reduce_scatter(schedule_, plan_.self, buffers_, ring_);
    }
  }
  void all_gather() {
    switch (algorithm_) {
      case Algorithm::kDirect:
        return direct_all_gather(schedule_, plan_.self, buffers_);
      case Algorithm::kDoubling:
        return doubling_all_gather(schedule_, plan_.self, buffers_);
      case Algorithm::kBruck:
        return bruck_all_gather(schedule_, plan_.self, buffers_);
      default:
        return ring_all_gather(schedule_, plan_.self, buffers_, ring_);
    }
  }
  void broadcast(int root) {
    switch (algorithm_) {
      case Algorithm::kTree:
        return tree_broadcast(schedule_, plan_.self, buffers_, root);
      case Algorithm::kDoubleTree:
        return double_tree_broadcast(schedule_, plan_.self, buffers_, root, tree_);
      default:
        return chain_broadcast(schedule_, plan_.self, buffers_, root, ring_);
    }
  }
  void reduce(int root) {
    switch (algorithm_) {
      case Algorithm::kDirect:
        return direct_reduce(schedule_, plan_.self, buffers_, root);
      case Algorithm::kDoubleTree:
        return double_tree_reduce(schedule_, plan_.self, buffers_, root, tree_);
      default:
        return chain_reduce(schedule_, plan_.self, buffers_, root, ring_);
    }
  }
  void all_to_all() {
    switch (algorithm_) {
      case Algorithm::kBruck:
        return bruck_all_to_all(schedule_, plan_.self, buffers_);
      case Algorithm::kRailLocal:
        return rail_all_to_all(schedule_, plan_.self, buffers_, ranks_by_server(*plan_.sites));
      default:
        return pairwise_all_to_all(schedule_, plan_.self, buffers_);
    }
  }

 private:
  CollectiveSchedule& schedule_;
  const CollectivePlan& plan_;
  const Algorithm algorithm_;
  const Buffers buffers_;
  RingOptions ring_;
  TreeOptions tree_;
};

// The reductions of the deterministic mode; false for other calls.
bool build_ordered(CollectiveSchedule& schedule, const GroupPosition& self, const Call& call,
                   const Buffers& buffers, const cost::HierarchicalLayout* grid) {
  if (!call.reduction.is_ordered) return false;
  if (call.kind == CallKind::kAllReduce)
    ordered_all_reduce(schedule, self, buffers, grid);
  else if (call.kind == CallKind::kReduceScatter)
    ordered_reduce_scatter(schedule, self, buffers);
  else if (call.kind == CallKind::kReduce)
    ordered_reduce(schedule, self, buffers, call.root);
  else
    return false;
  return true;
}

// A collective of one rank only copies.
void copy_alone(CollectiveSchedule& schedule, const Buffers& buffers) {
  if (buffers.in == nullptr || buffers.in == buffers.out) return;
  schedule.add(
      {.kind = StepKind::kCopy, .dst = buffers.out, .src = buffers.in, .bytes = buffers.bytes()});
}

}  // namespace

std::vector<Algorithm> algorithms_for(const CallShape& shape) {
  std::vector<Algorithm> algorithms;
  const std::size_t bytes = shape.bytes;
  const auto add = [&](Algorithm algorithm, bool is_fit = true) {
    if (is_fit) algorithms.push_back(algorithm);
  };
  switch (shape.kind) {
    case CallKind::kBarrier:
    case CallKind::kAllToAllV:
    case CallKind::kAllGatherV:
    case CallKind::kReduceScatterV:
      break;
    case CallKind::kAllReduce:
      add(Algorithm::kExchange, times_others(bytes, shape.ranks) <= kExchangeMax);
      add(Algorithm::kDoubling, bytes <= kDoublingMax);
      add(Algorithm::kHalving);
      add(Algorithm::kDoubleTree);
      add(Algorithm::kHierarchical, shape.has_grid);
      add(Algorithm::kRing);
      break;
    case CallKind::kReduceScatter:
      add(Algorithm::kDirect, bytes <= kDirectMax);
      add(Algorithm::kHalving);
      add(Algorithm::kRing);
      break;
    case CallKind::kAllGather:
      add(Algorithm::kDirect);
      add(Algorithm::kDoubling);
      add(Algorithm::kBruck, bytes <= kCopiedMax);
      add(Algorithm::kRing);
      break;
    case CallKind::kBroadcast:
      add(Algorithm::kTree);
      add(Algorithm::kDoubleTree);
      add(Algorithm::kRing);
      break;
    case CallKind::kReduce:
      add(Algorithm::kDirect, times_others(bytes, shape.ranks) <= kDirectMax);
      add(Algorithm::kDoubleTree);
      add(Algorithm::kRing);
      break;
    case CallKind::kGather:
    case CallKind::kScatter:
      add(Algorithm::kDirect);
      break;
    case CallKind::kAllToAll:
      add(Algorithm::kPairwise);
      add(Algorithm::kBruck, bytes <= kCopiedMax);
      add(Algorithm::kRailLocal, shape.has_rails);
      break;
  }
  return algorithms;
}

Algorithm usual_algorithm(const CallShape& shape) {
  switch (shape.kind) {
    case CallKind::kAllReduce:
      if (!is_small(shape.bytes))
        return shape.has_grid ? Algorithm::kHierarchical : Algorithm::kRing;
      return times_others(shape.bytes, shape.ranks) <= kSmallBytes ? Algorithm::kExchange
                                                                   : Algorithm::kDoubling;
    case CallKind::kBroadcast:
      return is_small(shape.bytes) ? Algorithm::kTree : Algorithm::kRing;
    case CallKind::kReduceScatter:
    case CallKind::kAllGather:
    case CallKind::kReduce:
      return is_small(shape.bytes) ? Algorithm::kDirect : Algorithm::kRing;
    case CallKind::kGather:
    case CallKind::kScatter:
      return Algorithm::kDirect;
    case CallKind::kAllToAll:
      return Algorithm::kPairwise;
    case CallKind::kBarrier:
    case CallKind::kAllToAllV:
    case CallKind::kAllGatherV:
    case CallKind::kReduceScatterV:
      break;
  }
  return Algorithm::kAutomatic;
}

std::size_t chunk_bytes_of(Algorithm algorithm, const CallShape& shape) {
  if (algorithm == Algorithm::kDoubleTree) return TreeOptions{}.chunk_bytes;
  if (algorithm != Algorithm::kRing) return 0;
  const bool is_chain = shape.kind == CallKind::kBroadcast || shape.kind == CallKind::kReduce;
  const auto parts = static_cast<std::size_t>(is_chain ? 1 : shape.ranks);
  return split_into_pieces(shape.bytes / parts).piece_bytes;
}

CallShape call_shape_of(CallKind kind, std::size_t bytes, int ranks, const CollectivePlan& plan) {
  CallShape shape{.kind = kind, .bytes = bytes, .ranks = ranks, .has_grid = plan.grid != nullptr};
  if (plan.sites == nullptr) return shape;
  const auto servers = ranks_by_server(*plan.sites).size();
  shape.has_rails = servers > 1 && servers < static_cast<std::size_t>(ranks);
  return shape;
}

void build_schedule(CollectiveSchedule& schedule, const CollectivePlan& plan, const Call& call) {
  schedule.reduction = call.reduction;
  const std::size_t element_bytes = size_of(call.reduction.type);
  const Buffers buffers{call.in, call.out, call.bytes / element_bytes, element_bytes};
  const int ranks = plan.self.world_size;
  if (call.kind == CallKind::kBarrier) return dissemination_barrier(schedule, plan.self);
  if (buffers.count == 0) return;
  if (ranks == 1) return copy_alone(schedule, buffers);
  if (build_ordered(schedule, plan.self, call, buffers, plan.grid)) return;
  Algorithm algorithm = plan.setting.algorithm;
  if (algorithm == Algorithm::kAutomatic)
    algorithm = usual_algorithm(call_shape_of(call.kind, whole_bytes(call, ranks), ranks, plan));
  Writer writer(schedule, plan, algorithm, buffers);
  switch (call.kind) {
    case CallKind::kBarrier:
      return;
    case CallKind::kAllReduce:
      return writer.all_reduce();
    case CallKind::kReduceScatter:
      return writer.reduce_scatter();
    case CallKind::kAllGather:
      return writer.all_gather();
    case CallKind::kBroadcast:
      return writer.broadcast(call.root);
    case CallKind::kReduce:
      return writer.reduce(call.root);
    case CallKind::kGather:
      return direct_gather(schedule, plan.self, buffers, call.root);
    case CallKind::kScatter:
      return direct_scatter(schedule, plan.self, buffers, call.root);
    case CallKind::kAllToAll:
      return writer.all_to_all();
    case CallKind::kAllToAllV:
    case CallKind::kAllGatherV:
    case CallKind::kReduceScatterV:
      return;  // varying.h
  }
}

}  // namespace regatta::collective
