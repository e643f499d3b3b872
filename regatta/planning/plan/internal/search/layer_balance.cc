#include "regatta/planning/plan/internal/search/layer_balance.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <numeric>

#include "regatta/base/core/ids.h"

namespace regatta::plan {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
// Halving stops, and times count as equal, at this share.
constexpr double kPrecision = 1e-9;
constexpr double kCoarse = 1e-4;  // where nothing is tried beyond it

class LayerBalancer {
 public:
  explicit LayerBalancer(const BalanceInput& input)
      : input_(input), layers_(input.dense + input.expert) {}

  std::optional<LayerBalance> run(int max_tries) {
    std::optional<std::vector<int>> layers = within(kNever);
    if (!layers) return std::nullopt;
    double high = strategy_lower_bound(*layers);
    double low = 0;
    const double precision = max_tries > 0 ? kPrecision : kCoarse;
    while (high - low > precision * high) {
      const double middle = (low + high) / 2;
      const auto found = within(middle);
      if (!found) {
        low = middle;
        continue;
      }
      layers = found;
      high = std::min(middle, strategy_lower_bound(*found));
    }
    best_ = {.layers = *layers, .time = time_of(*layers), .bound = Seconds{low}};
    if (max_tries == 0) return best_;
    for (moves_ = move_budget(stages()); move_one();) {
    }
    tries_ = max_tries;
    if (exceeds(best_.time.value, high)) {
      std::vector<int> some;
      room_ = room_within(best_.time.value);
      try_all(some, 0, 0);
    }
    best_.is_proven = tries_ >= 0;
    return best_;
  }

 private:
  int stages() const { return static_cast<int>(input_.stages.size()); }
  const BalanceStage& stage(int s) const { return at(input_.stages, s); }
  static bool exceeds(double time, double bound) { return time > bound * (1 + 4 * kPrecision); }

  workload::BlockCounts span(int first, int count) const {
    const int dense = std::clamp(input_.dense - first, 0, count);
    return workload::dense_and_expert_blocks(dense, count - dense);
  }

  double strategy_lower_bound(const std::vector<int>& layers) const {
    double before = 0;
    double most = 0;
    int first = 0;
    for (int s = 0; s < stages(); ++s) {
      const int count = at(layers, s);
      const double slot = stage(s).slot(span(first, count)).total().value;
      most = std::max(most, before + input_.micro_batches * slot);
      before += slot;
      first += count;
    }
    return most;
  }

  Seconds time_of(const std::vector<int>& layers) const {
    std::vector<MicroBatchTime> slots;
    int first = 0;
    for (int s = 0; s < stages(); ++s) {
      const int count = at(layers, s);
      slots.push_back(stage(s).slot(span(first, count)));
      first += count;
    }
    return pipeline_time(slots, input_.micro_batches);
  }

  // A partition whose paths keep to `bound`: by stage and blocks up to its end, the least that a
  // micro-batch takes so far, and the blocks of the stage.
  std::optional<std::vector<int>> within(double bound) const {
    const auto width = static_cast<std::size_t>(layers_ + 1);
    std::vector<double> least(width, kNever);
    least[0] = 0;
    std::vector<int> chosen(width * input_.stages.size(), 0);
    for (int s = 0; s < stages(); ++s)
      least = extended(s, bound, least, &chosen[static_cast<std::size_t>(s) * width]);
    if (least.back() == kNever) return std::nullopt;
    std::vector<int> layers(input_.stages.size());
    int end = layers_;
    for (int s = stages() - 1; s >= 0; --s) {
      const int count = chosen[static_cast<std::size_t>(s) * width + static_cast<std::size_t>(end)];
      at(layers, s) = count;
      end -= count;
    }
    return layers;
  }

  // `least` with one stage more; `chosen` by blocks up to its end.
  std::vector<double> extended(int s, double bound, const std::vector<double>& least,
                               int* chosen) const {
    std::vector<double> next(least.size(), kNever);
    const int others = stages() - 1 - s;  // each takes one block at least
    for (int first = s; first < layers_; ++first) {
      const double before = at(least, first);
      for (int count = 1; before < kNever && first + count <= layers_ - others; ++count) {
        const workload::BlockCounts blocks = span(first, count);
        const double slot = stage(s).slot(blocks).total().value;
        // More blocks take and hold no less.
        if (before + input_.micro_batches * slot > bound || !stage(s).fits(blocks)) break;
        double& end = at(next, first + count);
        if (before + slot >= end) continue;
        end = before + slot;
        chosen[first + count] = count;
      }
    }
    return next;
  }

  // Blocks that the stages from s on can hold, if they were alone, by stage.
  std::vector<int> room_within(double bound) const {
    std::vector<int> room(input_.stages.size() + 1, 0);
    for (int s = stages() - 1; s >= 0; --s) {
      int most = 0;
      for (int first = 0; first < layers_; ++first) {
        int count = most;
        while (first + count < layers_ && keeps(s, first, count + 1, 0, bound))
          ++count;
        most = std::max(most, count);
      }
      at(room, s) = room[static_cast<std::size_t>(s) + 1] + most;
    }
    return room;
  }

  bool keeps(int s, int first, int count, double before, double bound) const {
    const workload::BlockCounts blocks = span(first, count);
    const double slot = stage(s).slot(blocks).total().value;
    return before + input_.micro_batches * slot <= bound && stage(s).fits(blocks);
  }

  // The first move of a block from one stage to another that saves time; false: none does.
  bool move_one() {
    for (int from = 0; from < stages(); ++from) {
      for (int to = 0; to < stages(); ++to) {
        std::vector<int> layers = best_.layers;
        if (moves_ < 0) return false;
        if (from == to || --at(layers, from) == 0) continue;
        ++at(layers, to);
        if (!fits(layers) || --moves_ < 0) continue;
        const Seconds time = time_of(layers);
        if (!exceeds(best_.time.value, time.value)) continue;
        best_ = {layers, time, best_.bound};
        return true;
      }
    }
    return false;
  }

  bool fits(const std::vector<int>& layers) const {
    int first = 0;
    for (int s = 0; s < stages(); ++s) {
      const int count = at(layers, s);
      if (!stage(s).fits(span(first, count))) return false;
      first += count;
    }
    return true;
  }

  // Every partition that begins with `some`, its blocks up to `first`, and may beat the best.
  void try_all(std::vector<int>& some, int first, double before) {
    const auto s = static_cast<int>(some.size());
    if (tries_ < 0 || --tries_ < 0) return;
    if (s == stages()) {
      if (first != layers_) return;
      const Seconds time = time_of(some);
      if (exceeds(best_.time.value, time.value)) best_ = {some, time, best_.bound};
      return;
    }
    for (int count = 1; first + count <= layers_ - (stages() - 1 - s); ++count) {
      if (!keeps(s, first, count, before, best_.time.value)) return;
      if (layers_ - first - count > room_[static_cast<std::size_t>(s) + 1]) continue;
      some.push_back(count);
      try_all(some, first + count, before + stage(s).slot(span(first, count)).total().value);
      some.pop_back();
    }
  }

  const BalanceInput& input_;
  int layers_;
  LayerBalance best_;
  std::vector<int> room_;
  int tries_ = 0;
  int moves_ = 0;
};

}  // namespace

int move_budget(int stages) {
  constexpr int kOperations = 20'000'000;
  return std::max(50, kOperations / (stages * stages * stages));
}

MicroBatchTime BalanceStage::slot(const workload::BlockCounts& blocks) const {
  return {.forward = fixed.forward + dense.forward * blocks[0] + expert.forward * blocks[1],
          .backward = fixed.backward + dense.backward * blocks[0] + expert.backward * blocks[1]};
}

bool BalanceStage::fits(const workload::BlockCounts& blocks) const {
  return fixed_memory + dense_memory * blocks[0] + expert_memory * blocks[1] <= capacity;
}

std::optional<LayerBalance> balance_layers(const BalanceInput& input, int max_tries) {
  return LayerBalancer(input).run(max_tries);
}

}  // namespace regatta::plan
