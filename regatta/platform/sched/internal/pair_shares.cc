#include "regatta/platform/sched/internal/pair_shares.h"

#include <algorithm>
#include <bit>
#include <map>
#include <tuple>

#include "regatta/base/core/ids.h"

namespace regatta::sched {
namespace {

constexpr int kCurveMax = 255;  // larger replicas on one node
constexpr double kLossTolerance = 1e-6;

}  // namespace

RolePair order_pair(const JobRequest& job, int a, int b, int device_type) {
  return at(job.roles, b).devices > at(job.roles, a).devices ? RolePair{b, a, device_type}
                                                             : RolePair{a, b, device_type};
}

int room_beside(const GangTask& task, RolePair pair, int node, const NodeCapacity& free,
                int count) {
  const Role& larger = at(task.job.roles, pair.larger);
  NodeCapacity left = free;
  left.cpu_milli -= count * larger.cpu_milli;
  left.memory_mib -= count * larger.memory_mib;
  left.nic_milli -= count * larger.nic_milli;
  for (int i = 0; i < count * larger.devices; ++i)
    left.whole_free &= left.whole_free - 1;
  return room_on_node(task, pair.smaller, pair.device_type, node, left);
}

PairShares::PairShares(const GangTask& task, RolePair pair)
    : domains_(task.free.domains()),
      pair_(pair),
      needed_{at(task.size, pair.larger), at(task.size, pair.smaller)} {
  for (const ReplicaPlacement& replica : task.kept) {
    needed_.larger -= replica.role == pair.larger ? 1 : 0;
    needed_.smaller -= replica.role == pair.smaller ? 1 : 0;
  }
  // The curve of a node depends on these alone.
  std::map<std::tuple<bool, int, int, int, int, int, int>, int> known;
  for (const int node : domains_.order) {
    const NodeCapacity& free = task.free.free(node);
    const std::tuple key{free.is_open,
                         at(domains_.device_type, node),
                         std::popcount(free.whole_free),
                         task.free.node(node).device_memory_mib,
                         free.cpu_milli,
                         free.memory_mib,
                         free.nic_milli};
    const auto [entry, is_new] = known.try_emplace(key, static_cast<int>(std::ssize(curves_)));
    curve_at_.push_back(entry->second);
    if (!is_new) continue;
    curves_.push_back(curve_of(task, node));
    add_hull(entry->second);
  }
  std::stable_sort(steps_.begin(), steps_.end(),
                   [](const HullStep& a, const HullStep& b) { return a.loss < b.loss; });
}

PairShares::Curve PairShares::curve_of(const GangTask& task, int node) const {
  const NodeCapacity& free = task.free.free(node);
  const int most = room_on_node(task, pair_.larger, pair_.device_type, node);
  Curve curve;
  for (int count = 0; count <= std::min(most, kCurveMax); ++count)
    curve.push_back(room_beside(task, pair_, node, free, count));
  return curve;
}

void PairShares::add_hull(int curve) {
  const Curve& points = at(curves_, curve);
  is_too_long_ |= std::ssize(points) > kCurveMax;
  for (int from = 0; from + 1 < std::ssize(points);) {
    HullStep step;
    for (int to = from + 1; to < std::ssize(points); ++to) {
      const double loss = 1.0 * (at(points, from) - at(points, to)) / (to - from);
      if (to == from + 1 || loss <= step.loss) step = {loss, curve, to - from};
    }
    steps_.push_back(step);
    from += step.replicas;
  }
}

bool PairShares::may_hold(DomainRef domain) const {
  if (is_too_long_) return true;
  const NodeRange range = at(domains_.of(domain.level), domain.index);
  std::vector<int> nodes(curves_.size());
  double smaller = 0;
  for (int position = range.begin; position < range.end; ++position) {
    const int curve = at(curve_at_, position);
    ++at(nodes, curve);
    smaller += at(curves_, curve)[0];
  }
  int larger = needed_.larger;
  for (const HullStep& step : steps_) {
    if (larger <= 0) break;
    const long long most = 1LL * step.replicas * at(nodes, step.curve);
    const int taken = static_cast<int>(std::min<long long>(larger, most));
    larger -= taken;
    smaller -= taken * step.loss;
  }
  return larger <= 0 && smaller >= needed_.smaller - kLossTolerance;
}

std::optional<GangShares> PairShares::share_out(DomainRef domain) const {
  if (is_too_long_ || needed_.larger < 0 || needed_.smaller < 0) return std::nullopt;
  const NodeRange range = at(domains_.of(domain.level), domain.index);
  const std::size_t width = as_index(needed_.larger) + 1;
  std::vector<int> most(width, -1);  // smaller replicas; -1: not reached
  most[0] = 0;
  std::vector<std::uint8_t> chosen(as_index(range.end - range.begin) * width);
  long long steps = 0;
  for (int position = range.begin; position < range.end; ++position) {
    const Curve& curve = at(curves_, at(curve_at_, position));
    steps += static_cast<long long>(width * curve.size());
    if (steps > kPairStepsMax) return std::nullopt;
    std::uint8_t* const row = chosen.data() + as_index(position - range.begin) * width;
    // By falling sum, so that each node counts once.
    for (std::size_t sum = width; sum-- > 0;) {
      int best = -1;
      for (std::size_t count = 0; count < curve.size() && count <= sum; ++count) {
        const int before = most[sum - count];
        if (before < 0 || before + curve[count] <= best) continue;
        best = before + curve[count];
        row[sum] = static_cast<std::uint8_t>(count);
      }
      most[sum] = best;
    }
  }
  if (most.back() < needed_.smaller) return std::nullopt;
  return trace_back(range, chosen);
}

std::optional<GangShares> PairShares::trace_back(NodeRange range,
                                                 const std::vector<std::uint8_t>& chosen) const {
  GangShares shares(2);
  const std::size_t width = as_index(needed_.larger) + 1;
  int larger = needed_.larger;
  int smaller = needed_.smaller;
  for (int position = range.end; position-- > range.begin;) {
    const int count = chosen[as_index(position - range.begin) * width + as_index(larger)];
    const int beside = std::min(smaller, at(at(curves_, at(curve_at_, position)), count));
    if (count > 0) at(shares, pair_.larger).push_back({position, count});
    if (beside > 0) at(shares, pair_.smaller).push_back({position, beside});
    larger -= count;
    smaller -= beside;
  }
  for (std::vector<NodeShare>& role : shares)
    std::reverse(role.begin(), role.end());
  return shares;
}

}  // namespace regatta::sched
