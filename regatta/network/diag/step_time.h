// diag/step_time.h: step time and step marks of a job, from the period of its traffic alone, finer
// than the intervals in which bytes are counted. Pure.
// Sources: LLMPrism (2025), steps from flow records; Ellis, Beat tracking by dynamic programming,
// Journal of New Music Research 36(1), 2007; Stellingwerf, Period determination using phase
// dispersion minimization, ApJ 224, 1978.
//
// Cost: intervals times the longest step in intervals, a few dozen times.
#pragma once

#include <optional>
#include <vector>

#include "regatta/base/core/units.h"
#include "regatta/network/diag/internal/flow_series.h"

namespace regatta::diag {

struct StepTiming {
  Seconds mean;    // from the first mark to the last, by the steps between them
  Seconds median;  // of single steps: exact to a fraction of an interval
  // Share of the variation of all the traffic that repeats with the steps; traffic that the marks
  // do not cover counts as not repeating. 1: all; 0 or less: none.
  double periodicity = 0;
  // Share of the series that the steps cover, with a part of a step at each end.
  double coverage = 0;
  // Another period explains the traffic almost as well: this one may be a part or a multiple of the
  // step.
  bool is_ambiguous = false;
  // One time in each step, at the same phase, after the start of the series. The phase itself
  // cannot be inferred from traffic.
  std::vector<Seconds> marks;

  std::size_t steps() const { return marks.size() - 1; }
  // Whether the mean is the step time: enough steps that cover the series, high periodicity and no
  // rival period. In 10,000 jobs like those of step_time_test.cc, 5 of 4,232 clear steps were off
  // by 10 % or more: parts of a step in records of a few steps, and doubled steps.
  bool is_clear(double periodicity_min = 0.5) const;
};

struct StepSearchOptions {
  std::size_t step_min = 4;           // intervals in a step
  double autocorrelation_min = 0.15;  // of the traffic at a lag of one step
};

// The steps that all of `flows` share, with equal weight for each flow. Nothing when they have no
// period, or when fewer than three steps fit into the series. The result may be a part of a step or
// several steps unless is_clear().
std::optional<StepTiming> find_steps(const std::vector<Series>& flows, Seconds interval,
                                     const StepSearchOptions& search = {});

// Periodicity of `bytes` with the `marks` of find_steps() of any flow.
double periodicity_of(Series bytes, Seconds interval, const std::vector<Seconds>& marks);

}  // namespace regatta::diag
