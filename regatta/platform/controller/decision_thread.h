// controller/decision_thread.h: runs the scheduler beside the controller's loop: one decision at a
// time, on a view that nobody else touches.
#pragma once

#include <functional>
#include <memory>

#include "regatta/base/core/result.h"
#include "regatta/base/core/units.h"
#include "regatta/platform/control/scheduling_view.h"
#include "regatta/platform/sched/decide.h"
#include "regatta/platform/sched/scheduling_policy.h"

namespace regatta::controller {

struct DecisionReport {
  Result<sched::SchedulingDecision> decision;
  Seconds time;  // that it took
};

class DecisionThread {
 public:
  // `report` runs in the thread after each decision.
  explicit DecisionThread(std::function<void(DecisionReport)> report);
  ~DecisionThread();  // waits for a decision that is under way
  DecisionThread(const DecisionThread&) = delete;
  DecisionThread& operator=(const DecisionThread&) = delete;

  // Call it only when the last decision was reported.
  void decide(control::SchedulingView view, const sched::SchedulingPolicy& policy);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace regatta::controller
