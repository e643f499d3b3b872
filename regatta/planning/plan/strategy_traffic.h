// plan/strategy_traffic.h: what the ranks of a strategy send each other in a step, axis by axis, in
// rank order (tensor ranks adjacent, then context, data, pipeline). Volumes are those of
// plan/estimate.h and of cost/gpu_network.h, which name their sources.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>
#include <vector>

#include "regatta/base/core/units.h"
#include "regatta/planning/plan/estimate.h"

namespace regatta::plan {

enum class ParallelAxis { kTp, kCp, kEp, kPp, kDp };
inline constexpr std::size_t kAxisCount = 5;
inline constexpr std::array<std::string_view, kAxisCount> kAxisNames = {"tp", "cp", "ep", "pp",
                                                                        "dp"};

enum class GroupPattern {
  kRing,      // every rank to the next one, the last to the first
  kChain,     // neighbours to each other, as much in both directions
  kEnds,      // the first and the last to each other: a stage holds several parts of the model
  kExchange,  // every rank to all others alike
};

// Groups of `ranks` ranks that are `stride` apart and talk in one pattern; the groups together are
// all ranks. `bytes` of a step: of a ring and a chain over each connection, one way; of an
// exchange from each rank to the others together.
struct GroupTraffic {
  GroupPattern pattern = GroupPattern::kRing;
  int ranks = 1;
  int stride = 1;
  double bytes = 0;
};

// `overlap` is the share that computation hides, of no more than `beside` lasts.
struct AxisTraffic {
  std::vector<GroupTraffic> lines;
  double overlap = 0;
  Seconds beside;
};
using StrategyTraffic = std::array<AxisTraffic, kAxisCount>;  // by Axis

// What is left of `exchange` of an axis beside its computation.
Seconds exposed_time(const AxisTraffic& axis, Seconds exchange);

// Of the stage that holds most, which all stages are taken to be like.
StrategyTraffic strategy_traffic(const EstimateInput& input, const MicroBatchWork& work,
                                 int micro_batches);

}  // namespace regatta::plan
