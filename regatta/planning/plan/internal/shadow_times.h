// plan/internal/shadow_times.h: the least time of a part of the fabric that holds so many slots:
// the geometry behind plan/internal/placement_bound.h.
#pragma once

#include <array>
#include <cstddef>
#include <vector>

#include "regatta/planning/plan/internal/slot_network.h"

namespace regatta::plan {

// Which shadow of a set of slots counts the lines that it touches.
enum class Shadow {
  kNone,     // not known: a part of at least one line, unless the slots fill lines
  kStages,   // lines of all columns of a stage
  kColumns,  // chains through all stages
  kOuter,    // lines of neighbours: touched in the face of outer columns and stages
  kInner,    // lines across those
};

// A RankLine in slots.
struct SlotLine {
  std::size_t axis = 0;
  LinePattern pattern = LinePattern::kRing;
  Shadow shadow = Shadow::kNone;
  int slots = 1;
  int stride = 1;
  double bytes = 0;  // of a connection, one way; of an exchange, of two slots
};

// What a part knows of the grid of slots.
struct SlotGrid {
  int stages = 1;
  int columns = 1;
  int inner = 1;  // neighbouring columns that a shorter line joins
  std::vector<SlotLine> lines;
  bool has_chain = false;  // through all stages
};
SlotGrid slot_grid(const SlotNetwork& network);

// Ends of chains are dear in steps of `ends_step`: place e of a row is for up to (e + 1) *
// ends_step
// - 1 of them.
constexpr int kEndsLevels = 16;
using EndsTimes = std::array<double, kEndsLevels>;
// Row n: for n slots; row 0 is of zeros.
std::vector<EndsTimes> shadow_times(const SlotNetwork& network, const SlotGrid& grid, int most,
                                    BytesPerSecond rate, int ends_step);

}  // namespace regatta::plan
