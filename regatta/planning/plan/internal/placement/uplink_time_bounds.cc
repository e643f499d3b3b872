#include "regatta/planning/plan/internal/placement/uplink_time_bounds.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <optional>

#include "regatta/base/core/ids.h"

namespace regatta::plan {
namespace {

constexpr double kNever = std::numeric_limits<double>::max();
// Larger parts are projected on fewer sides, which only lowers their times.
constexpr int kMostForInner = 256;
constexpr int kMostForOuter = 48;

// Nothing where the line lies inside servers, or not evenly over them: then nothing is claimed.
std::optional<SlotGroup> folded(const PlacementProblem& network, std::size_t axis,
                                const GroupTraffic& line) {
  const int devices = network.devices;
  const int extent = line.ranks * line.stride;
  if (line.pattern == GroupPattern::kEnds || extent <= devices) return std::nullopt;
  SlotGroup folded{.axis = axis, .pattern = line.pattern};
  double inside = 1;  // ranks of a line in a server
  double groups = devices;
  if (line.stride % devices == 0) {
    folded.slots = line.ranks;
    folded.stride = line.stride / devices;
  } else if (devices % line.stride == 0 && extent % devices == 0) {
    folded.slots = extent / devices;
    inside = static_cast<double>(devices) / line.stride;
    groups = line.stride;
  } else {
    return std::nullopt;
  }
  folded.bytes = line.bytes * groups;
  if (line.pattern == GroupPattern::kExchange) folded.bytes *= inside * inside / (line.ranks - 1);
  return folded;
}

Projection projection_of(const SlotGrid& grid, const SlotGroup& line) {
  const bool is_exchange = line.pattern == GroupPattern::kExchange;
  const bool is_chain = line.pattern == GroupPattern::kChain;
  if (line.slots == grid.stages && line.stride == grid.columns && is_chain)
    return Projection::kColumns;
  if (is_chain) return Projection::kNone;
  if (line.slots == grid.columns && line.stride == 1 && !is_exchange) return Projection::kStages;
  if (line.slots == grid.inner && line.stride == 1 && grid.inner > 1) return Projection::kOuter;
  if (line.slots * grid.inner == grid.columns && line.stride == grid.inner && grid.inner > 1)
    return Projection::kInner;
  return Projection::kNone;
}

int ceil_divide(long long a, long long b) {
  return static_cast<int>((a + b - 1) / b);
}

// The connections that leave a part of `n` slots that touches `touched` lines of `k`.
double cut_rings(int n, int k, int touched) {
  const long long over = static_cast<long long>(touched) * k - n;
  return over <= 0 ? 0 : ceil_divide(over, k - 1);
}
double cut_exchanges(int n, int k, int touched) {
  const int full = (n - touched) / (k - 1);
  if (full >= touched) return 0;
  const double odd = 1 + (n - touched) % (k - 1);
  return odd * (k - odd) + static_cast<double>(touched - full - 1) * (k - 1);
}

// The lines that a set of slots touches, by Shadow.
using Touched = std::array<int, 5>;

class Times {
 public:
  Times(const PlacementProblem& network, const SlotGrid& grid, BytesPerSecond rate,
        int chain_end_step)
      : network_(network), grid_(grid), rate_(rate), ends_step_(chain_end_step) {}

  ChainEndTimes of(int n, bool looks_inner, bool looks_outer) const {
    ChainEndTimes least;
    least.fill(kNever);
    const int outer = grid_.columns / grid_.inner;
    for (int stages = 1; stages <= std::min(n, grid_.stages); ++stages) {
      const int fewest = ceil_divide(n, stages);
      const int most = looks_inner ? std::min(n, grid_.columns) : fewest;
      for (int columns = fewest; columns <= std::min(most, grid_.columns); ++columns) {
        // The face of inner columns and stages: all of it, or as little as lines along it wish.
        const int face = std::min(n, grid_.inner * stages);
        for (int inner = looks_outer ? std::max(stages, ceil_divide(n, outer)) : face;
             inner <= face; ++inner) {
          const int neighbours = std::max({ceil_divide(n, grid_.inner), stages,
                                           ceil_divide(static_cast<long long>(n) * n,
                                                       static_cast<long long>(columns) * inner)});
          add(n, {0, stages, columns, neighbours, looks_outer ? inner : 0}, least);
        }
      }
    }
    return least;
  }

 private:
  double connections(int n, const SlotGroup& line, const Touched& touched) const {
    const int known = touched[static_cast<std::size_t>(line.projection)];
    const bool is_exchange = line.pattern == GroupPattern::kExchange;
    if (known > 0)
      return is_exchange ? cut_exchanges(n, line.slots, known) : cut_rings(n, line.slots, known);
    const int rest = n % line.slots;
    if (is_exchange) return static_cast<double>(rest) * (line.slots - rest);
    return rest > 0 ? 1 : 0;
  }

  double exposed(std::size_t axis, double bytes) const {
    const Seconds link{rate_.value > 0 ? bytes / rate_.value : 0};
    return exposed_time(network_.axes[axis], std::max(network_.nic_time[axis], link)).value;
  }

  // The time of a set with these projections, where it is less.
  void add(int n, const Touched& touched, ChainEndTimes& least) const {
    std::array<double, kAxisCount> bytes{};
    const SlotGroup* chain = nullptr;
    for (const SlotGroup& line : grid_.lines) {
      if (line.projection == Projection::kColumns)
        chain = &line;
      else
        bytes[line.axis] += line.bytes * connections(n, line, touched);
    }
    constexpr auto kPp = static_cast<std::size_t>(ParallelAxis::kPp);
    double others = 0;
    for (std::size_t axis = 0; axis < kAxisCount; ++axis)
      if (axis != kPp || chain == nullptr) others += exposed(axis, bytes[axis]);
    if (chain == nullptr) {
      for (double& time : least)
        time = std::min(time, others);
      return;
    }
    const int columns = touched[static_cast<std::size_t>(Projection::kColumns)];
    const double cut = cut_rings(n, chain->slots, columns);
    for (int level = 0; level < kChainEndLevels; ++level) {
      const double ends = (level + 1) * ends_step_ - 1;
      const double sent = chain->bytes * std::max(cut, 2 * columns - ends);
      double& time = at(least, level);
      time = std::min(time, others + exposed(kPp, bytes[kPp] + sent));
    }
  }

  const PlacementProblem& network_;
  const SlotGrid& grid_;
  BytesPerSecond rate_;
  int ends_step_;
};

}  // namespace

SlotGrid slot_grid(const PlacementProblem& network) {
  SlotGrid grid{.stages = network.stages, .columns = network.slots / network.stages};
  for (std::size_t axis = 0; axis < kAxisCount; ++axis) {
    for (const GroupTraffic& line : network.axes[axis].lines)
      if (const auto some = folded(network, axis, line)) grid.lines.push_back(*some);
  }
  for (const SlotGroup& line : grid.lines)
    if (line.stride == 1 && line.slots < grid.columns && grid.columns % line.slots == 0)
      grid.inner = std::max(grid.inner, line.slots);
  for (SlotGroup& line : grid.lines) {
    line.projection = projection_of(grid, line);
    grid.has_chain |= line.projection == Projection::kColumns;
  }
  return grid;
}

std::vector<ChainEndTimes> uplink_time_bounds(const PlacementProblem& network, const SlotGrid& grid,
                                              int most, BytesPerSecond rate, int chain_end_step) {
  const auto has = [&](Projection projection) {
    return std::any_of(grid.lines.begin(), grid.lines.end(),
                       [&](const SlotGroup& line) { return line.projection == projection; });
  };
  const bool looks_outer = has(Projection::kInner) && most <= kMostForOuter;
  const bool looks_inner = looks_outer || (has(Projection::kOuter) && most <= kMostForInner);
  const Times times(network, grid, rate, chain_end_step);
  std::vector<ChainEndTimes> rows = {ChainEndTimes{}};
  for (int n = 1; n <= most; ++n)
    rows.push_back(times.of(n, looks_inner, looks_outer));
  return rows;
}

}  // namespace regatta::plan
