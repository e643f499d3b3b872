// controller/decision_thread.h: runs the scheduler beside the controller's loop: one decision at a
// time, on a view that nobody else touches.
#pragma once

#include <functional>
#include <memory>

#include "regatta/base/core/result.h"
#include "regatta/base/core/units.h"
#include "regatta/platform/control/scheduling_view.h"
#include "regatta/platform/controller/wait_explainer.h"
#include "regatta/platform/sched/decide.h"
#include "regatta/platform/sched/scheduling_policy.h"

namespace regatta::controller {

struct DecisionReport {
  Result<sched::SchedulingDecision> decision;
  Seconds time;                               // that it took
  std::shared_ptr<const DecidedState> state;  // where it was asked for, and the decision succeeded
};

// The cluster at a revision, and how it is decided on.
struct DecisionTask {
  control::SchedulingView view;
  sched::SchedulingPolicy policy;
  store::Revision revision = 0;
  bool keeps_state = false;  // the report has it
};

class DecisionThread {
 public:
  // `report` runs in the thread after each decision.
  explicit DecisionThread(std::function<void(DecisionReport)> report);
  ~DecisionThread();  // waits for a decision that is under way
  DecisionThread(const DecisionThread&) = delete;
  DecisionThread& operator=(const DecisionThread&) = delete;

  // Call it only when the last decision was reported.
  void decide(DecisionTask task);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace regatta::controller
