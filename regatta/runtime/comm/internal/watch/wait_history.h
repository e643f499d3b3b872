// comm/internal/watch/wait_history.h: how long operations of a rank stood still before they went
// on. A pipeline stage waits for the others in every step and a slow device keeps its peers
// waiting: only a wait that is far longer than those is logged. Pure.
#pragma once

#include "regatta/base/core/units.h"
#include "regatta/runtime/comm/internal/watch/verdict.h"

namespace regatta::comm {

class WaitHistory {
 public:
  // An operation goes on after it stood still for `wait`.
  void record(Seconds wait);
  // How long an operation has to stand still before `finding` is logged: nothing for certain
  // findings; else 10 s for ranks that have not called, 3 s for the others, or three times the
  // longest usual wait if that is more.
  Seconds log_after(Finding finding) const;

 private:
  Seconds longest_;  // of the recent waits: each new one takes a tenth off the memory of the old
};

}  // namespace regatta::comm
