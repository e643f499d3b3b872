// train/internal/phase_clock.h: divides the time of the compute thread into phases without gaps or
// overlap, and keeps the spans of traced steps. One thread. A phase of computation ends when the
// device has done its work (device::begin_wait), not when the thread has submitted it.
#pragma once

#include "regatta/base/core/units.h"
#include "regatta/model/workload/timeline.h"

namespace regatta::train {

// The current work of the compute thread.
struct Activity {
  workload::Phase phase = workload::Phase::kOther;
  int micro_batch = -1;
  int layer = -1;
};

// One finished step. The step lasts from the end of the one before to its own end.
struct StepTimes {
  Seconds time;
  workload::PhaseTimes phases;  // sums to time
  workload::Timeline spans;     // start: CLOCK_MONOTONIC; empty unless traced
};

class PhaseClock {
 public:
  explicit PhaseClock(Rank rank);

  // Starts the first step now; kOther runs.
  void start(int step, bool traced);

  // Ends the running activity and starts `next`; returns the one that ran, so that a wait inside it
  // can restore it. `at`: the time of the change, at least the start of the running one; the
  // default is now.
  Activity enter(const Activity& next);
  Activity enter_at(const Activity& next, Seconds at);

  // A transfer in the background, on a row of its own: no phase counts it.
  void background(const Activity& activity, Seconds start, Seconds end);

  // Ends the step now, and starts the next one at the same moment.
  StepTimes finish_step(bool next_traced);

 private:
  void settle() const;
  void close(Seconds at);

  Rank rank_;
  int step_ = 0;
  bool traced_ = false;
  Seconds step_start_;
  Seconds activity_start_;
  Activity running_;
  StepTimes times_;
};

}  // namespace regatta::train
