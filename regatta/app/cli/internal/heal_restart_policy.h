// cli/internal/heal_restart_policy.h: whether the process that heals, once it was killed, goes on
// with what the killed one held. Pure: times are those of os::monotonic_now() and are arguments.
#pragma once

#include "regatta/base/core/units.h"

namespace regatta::cli {

// After several early ends in a row, the kept state may be what ends the process. An end is early
// within 1 s of the start; that of a process that hangs is so where it hung within 10 s.
class RestartPolicy {
 public:
  explicit RestartPolicy(Seconds now) : started_(now) {}

  // Call it whenever the process is found ended by a signal: the first call for each end counts.
  // `hung`: for how long it had hung; 0: it did not. True if this end has the state forgotten.
  bool end(Seconds now, Seconds hung);
  // It was started again. Starts that fail are none.
  void restart(Seconds now);

 private:
  Seconds started_;
  int early_ends_ = 0;  // one after the other
  bool is_counted_ = false;
};

}  // namespace regatta::cli
