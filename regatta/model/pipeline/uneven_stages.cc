#include "regatta/model/pipeline/uneven_stages.h"

#include <algorithm>
#include <limits>

#include "regatta/base/core/ids.h"
#include "regatta/model/pipeline/internal/micro_batch_route.h"

namespace regatta::pipeline {
namespace {

using workload::PipelineSchedule;

// A stage of 1F1B as the paths through it see it.
struct CriticalPath {
  double pair = 0;     // forward and backward
  double message = 0;  // to the next stage and back
  double reach = 0;    // one pair and message in each stage before it
  double warm_up = 0;  // forwards alone, as long as a path may stay in this stage and those before
  double drain = 0;    // backwards alone
};

std::vector<CriticalPath> critical_paths(const PipelineShape& shape, const PipelineTimes& times) {
  std::vector<CriticalPath> ways;
  double forward = 0;
  double backward = 0;
  double reach = 0;
  for (int stage = 0; stage < shape.stages; ++stage) {
    const auto s = static_cast<std::size_t>(stage);
    const PartTimes& part = times.parts[s];
    const double gradients = (part.input_gradient + part.weight_gradient).value;
    const double pair = part.forward.value + gradients;
    const double message = 2 * times.messages[s].value;
    const double rounds = shape.stages - 1 - stage;
    forward = std::max(forward, part.forward.value);
    backward = std::max(backward, gradients);
    ways.push_back({pair, message, reach, rounds * forward, rounds * backward});
    reach += pair + message;
  }
  return ways;
}

// The longest path of so many pairs that goes up from stage `low`, without the pair with which it
// turns there.
double above(const std::vector<CriticalPath>& ways, std::size_t low, int pairs) {
  double best = 0;
  double passed = ways[low].pair;
  for (std::size_t x = low; x-- > 0 && --pairs > 0;) {
    passed += ways[x].message;
    best = std::max(best, passed + pairs * ways[x].pair);
    passed += ways[x].pair;
  }
  return best;
}

// The same down from stage `high`.
double below(const std::vector<CriticalPath>& ways, std::size_t high, int pairs) {
  double best = 0;
  for (std::size_t x = high; x < ways.size() && pairs > 0; ++x, --pairs)
    best = std::max(best, ways[x].reach - ways[high].reach + pairs * ways[x].pair);
  return best;
}

double one_forward_one_backward(const PipelineShape& shape, const PipelineTimes& times) {
  const std::vector<CriticalPath> ways = critical_paths(shape, times);
  double best = 0;
  for (std::size_t low = 0; low < ways.size(); ++low) {
    const int pairs = shape.micro_batches - shape.stages + 1 + static_cast<int>(low);
    const double up = above(ways, low, pairs - 1);
    double slowest = 0;
    for (std::size_t high = low; high < ways.size(); ++high) {
      const CriticalPath& end = ways[high];
      slowest = std::max(slowest, ways[low].pair);
      slowest = std::max(slowest, end.pair);
      const double between =
          std::max({below(ways, high, pairs), end.pair + (pairs - 1) * slowest, end.pair + up});
      const double ends = std::max(ways[low].warm_up + end.drain, end.warm_up + ways[low].drain);
      best = std::max(best, end.reach + ends + between);
    }
  }
  return best;
}

// The soonest that a stage can start, its work, and the least that is left when it has ended.
struct StageBound {
  double head = std::numeric_limits<double>::infinity();
  double work = 0;
  double tail = std::numeric_limits<double>::infinity();
  double weights = 0;  // the part of `work` that no pass waits for
};

double message_between(const PipelineShape& shape, const PipelineTimes& times, int from, int to) {
  if (from == to) return 0;
  const int low = std::min(from, to);
  const int edge = std::max(from, to) - low == 1 ? low : shape.stages - 1;
  return times.messages[as_index(edge)].value;
}

// One route of the micro-batches; returns the time of one that is alone.
double walk(const PipelineShape& shape, const PipelineTimes& times, RoutePosition at,
            std::vector<StageBound>& stages) {
  const MicroBatchRoute chain(shape);
  const bool is_split =
      shape.schedule != PipelineSchedule::k1F1B && shape.schedule != PipelineSchedule::kInterleaved;
  const bool is_dual = shape.schedule == PipelineSchedule::kDualPipe;
  const double micro_batches = is_dual ? shape.micro_batches / 2 : shape.micro_batches;
  const double share = std::min(1.0, times.overlapped_share);
  double down = 0;
  double up = 0;
  double last = 0;  // behind the last input gradient of all
  for (bool is_first = true;; is_first = false) {
    const PartTimes& part = times.parts[as_index(at.stage * parts_of(shape) + at.part)];
    const double f = share * part.forward.value;
    const double i = share * part.input_gradient.value;
    const double w = share * part.weight_gradient.value;
    if (is_first && is_split) last = w;
    StageBound& stage = stages[as_index(at.stage)];
    stage.head = std::min(stage.head, down);
    stage.tail = std::min(stage.tail, up + last);
    stage.work += micro_batches * (f + i + w);
    stage.weights += is_split ? micro_batches * w : 0;
    down += f;
    up += is_split ? i : i + w;
    const auto next = chain.after(at);
    if (!next) return down + up + last;
    const double message = message_between(shape, times, at.stage, next->stage);
    down += message;
    up += message;
    at = *next;
  }
}

}  // namespace

std::optional<Seconds> makespan(const PipelineShape& shape, const PipelineTimes& times) {
  const bool is_covered = shape.schedule == PipelineSchedule::k1F1B && !times.is_blocking &&
                          shape.micro_batches >= shape.stages &&
                          std::all_of(times.messages.begin(), times.messages.end() - 1,
                                      [](Seconds message) { return message.value == 0; });
  if (!is_covered) return std::nullopt;
  return Seconds{one_forward_one_backward(shape, times)};
}

Seconds makespan_bound(const PipelineShape& shape, const PipelineTimes& times) {
  std::vector<StageBound> stages(static_cast<std::size_t>(shape.stages));
  double bound = walk(shape, times, {0, 0}, stages);
  if (shape.schedule == PipelineSchedule::kDualPipe)
    bound = std::max(bound, walk(shape, times, {shape.stages - 1, 1}, stages));
  for (const StageBound& stage : stages) {
    const double others = std::max(0.0, stage.tail - stage.weights);
    bound = std::max(bound, stage.head + stage.work + others);
  }
  if (shape.schedule == PipelineSchedule::k1F1B && shape.micro_batches >= shape.stages)
    bound = std::max(bound, one_forward_one_backward(shape, times));
  return {bound};
}

}  // namespace regatta::pipeline
