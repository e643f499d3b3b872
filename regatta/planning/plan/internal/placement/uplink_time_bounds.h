// plan/internal/placement/uplink_time_bounds.h: the least time of a part of the fabric that holds
// so many slots: the geometry behind plan/internal/placement/placement_lower_bound.h.
#pragma once

#include <array>
#include <cstddef>
#include <vector>

#include "regatta/planning/plan/internal/placement/placement_problem.h"

namespace regatta::plan {

// Which projection of a set of slots counts the lines that it touches.
enum class Projection {
  kNone,     // not known: a part of at least one line, unless the slots fill lines
  kStages,   // lines of all columns of a stage
  kColumns,  // chains through all stages
  kOuter,    // lines of neighbours: touched in the face of outer columns and stages
  kInner,    // lines across those
};

// A GroupTraffic in slots.
struct SlotGroup {
  std::size_t axis = 0;
  GroupPattern pattern = GroupPattern::kRing;
  Projection projection = Projection::kNone;
  int slots = 1;
  int stride = 1;
  double bytes = 0;  // of a connection, one way; of an exchange, of two slots
};

// The grid of slots as the bounds of a part need it.
struct SlotGrid {
  int stages = 1;
  int columns = 1;
  int inner = 1;  // neighbouring columns that a shorter line joins
  std::vector<SlotGroup> lines;
  bool has_chain = false;  // through all stages
};
SlotGrid slot_grid(const PlacementProblem& network);

// Ends of chains are dear in steps of `chain_end_step`: place e of a row is for up to (e + 1) *
// chain_end_step
// - 1 of them.
constexpr int kChainEndLevels = 16;
using ChainEndTimes = std::array<double, kChainEndLevels>;
// Row n: for n slots; row 0 is of zeros.
std::vector<ChainEndTimes> uplink_time_bounds(const PlacementProblem& network, const SlotGrid& grid,
                                              int most, BytesPerSecond rate, int chain_end_step);

}  // namespace regatta::plan
