// diag/step_time.h: the steps of a job from the rhythm of its traffic alone: how long one takes and
// when each began, finer than the intervals in which bytes were counted. Pure.
// Sources: LLMPrism (2025), steps from flow records; Ellis, Beat tracking by dynamic programming,
// Journal of New Music Research 36(1), 2007; Stellingwerf, Period determination using phase
// dispersion minimization, ApJ 224, 1978.
//
// Cost: intervals times the longest step, in intervals, a few dozen times.
#pragma once

#include <optional>
#include <vector>

#include "regatta/base/core/units.h"
#include "regatta/network/diag/internal/flow_series.h"

namespace regatta::diag {

struct StepTiming {
  Seconds mean;    // from the first mark to the last, by the steps between them
  Seconds median;  // of single steps: exact to a fraction of an interval
  // What of the ups and downs of the traffic repeats with the steps: 1 all, 0 or less none.
  double regularity = 0;
  // One in each step, at the same place of all: after the start of the series. Where in the step
  // that place is cannot be known from traffic.
  std::vector<Seconds> marks;
};

struct StepSearchOptions {
  std::size_t shortest = 4;      // intervals in a step
  double likeness_least = 0.15;  // of the traffic to itself a step later, as a correlation
};

// The steps that all of `flows` share, each of them as important as any other. Nothing when they
// have no rhythm, or when fewer than three steps fit into the series.
std::optional<StepTiming> find_steps(const std::vector<Series>& flows, Seconds interval,
                                     const StepSearchOptions& search = {});

// What of the ups and downs of `bytes` repeats between `marks` (of find_steps(), of any flow): of
// each step, how well the others foretell it. 1: all; about 0 or less: nothing.
double repeats_with(Series bytes, Seconds interval, const std::vector<Seconds>& marks);

}  // namespace regatta::diag
