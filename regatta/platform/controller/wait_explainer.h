// controller/wait_explainer.h: explains why jobs wait from the latest decision, beside the
// controller's loop: what blocks a job in one thread, when it starts, which may take seconds, in
// another.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "regatta/base/core/result.h"
#include "regatta/base/core/units.h"
#include "regatta/platform/sched/cluster_snapshot.h"
#include "regatta/platform/sched/decide.h"
#include "regatta/platform/sched/scheduling_policy.h"
#include "regatta/platform/sched/wait_explanation.h"
#include "regatta/platform/store/store.h"

namespace regatta::controller {

// A decision, and the cluster and the queue once it is carried out.
struct DecidedState {
  sched::ClusterSnapshot snapshot;
  sched::JobQueue queue;
  sched::SchedulingPolicy policy;
  sched::SchedulingDecision decision;
  store::Revision revision = 0;  // of the tables from which it was made
};

struct WaitAnswer {
  store::Revision revision = 0;
  int position = 0;  // in its queue, from 1; 0: it starts now
  int ahead = 0;     // waiting jobs of all queues that the decision considered before it
  sched::WaitExplanation explanation;
};

// When a pending job starts, in Unix milliseconds: an 80 % interval and the median.
struct StartTimes {
  std::int64_t early_ms = 0;
  std::int64_t likely_ms = 0;
  std::int64_t late_ms = 0;  // 0: beyond 60 days
};

// Its handlers run in its threads. Answers are kept until the next state.
class WaitExplainer {
 public:
  WaitExplainer();
  ~WaitExplainer();  // waits for what is under way
  WaitExplainer(const WaitExplainer&) = delete;
  WaitExplainer& operator=(const WaitExplainer&) = delete;

  // Questions from now on are answered from this state. Null: from none, and memory is given
  // back.
  void set_state(std::shared_ptr<const DecidedState> state);
  // `handler` gets the answer without a prediction, and once more with one. Not a second time where
  // the job starts now, where the first has one already, and where too many forecasts wait.
  // kNotFound: the state has no such job.
  void explain(const std::string& job, std::function<void(Result<WaitAnswer>)> handler);
  // The same for a job as if it had been submitted now: once, with its prediction. It takes the
  // time of a decision more.
  void explain_new(sched::JobRequest request, std::function<void(Result<WaitAnswer>)> handler);
  // Predicts the starts of the first `count` jobs that wait; infinite times: not predicted.
  void predict_first(int count,
                     std::function<void(std::vector<sched::StartPrediction>, Seconds now)> handler);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace regatta::controller
