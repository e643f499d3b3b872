// sched/wait_explanation.h: why one pending job waits after a decision, for what, and when it will
// start: what start_prediction.h computes, put together and said in sentences.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "regatta/base/core/result.h"
#include "regatta/platform/sched/cluster_snapshot.h"
#include "regatta/platform/sched/decide.h"
#include "regatta/platform/sched/start_prediction.h"

namespace regatta::sched {

struct WaitExplanation {
  std::string job;
  Seconds now;                            // of the snapshot; the times below are on its clock
  std::optional<SchedulingAction> start;  // the decision starts it: what follows is empty then
  std::vector<WaitingJob> causes;         // of the job, in the decision
  BlockingSet blocking;
  // Nothing until predict_wait(); infinite times: none is predicted, and start_sentence() says why.
  std::optional<StartPrediction> prediction;
  // Pending jobs without a known run time that keep it from having a predicted start.
  std::vector<std::string> endless;
  bool may_share = false;  // devices in use, by mixing: predictions leave that out
  // Why there is no prediction though the queue played forward starts it: "its subgroups are left
  // out"; else "".
  std::string left_out;
};

// `snapshot` and `queue` are those after apply_decision() of `decision`. Fails with kNotFound where
// the decision leaves no such job pending and starts none, with kInvalidInput where a job names a
// queue that is no leaf.
Result<WaitExplanation> explain_wait(const ClusterSnapshot& snapshot, const JobQueue& queue,
                                     const SchedulingPolicy& policy,
                                     const SchedulingDecision& decision, std::string_view job);

// Adds when the job starts, or why that is not predicted; takes some seconds at most, as fewer
// samples are drawn of a larger queue. Nothing to do where it starts now or never fits.
Status predict_wait(const ClusterSnapshot& snapshot, const JobQueue& queue,
                    const SchedulingPolicy& policy, WaitExplanation& explanation);

// Samples that predict_starts() draws of these jobs in some seconds at most.
int forecast_samples(const ClusterSnapshot& snapshot, const JobQueue& queue);

// "starts in about 25 min (80 %: 10 min to 1 h)", "no start is predicted: when job a ends is not
// known". After predict_wait(), of a job that the decision does not start.
std::string start_sentence(const WaitExplanation& explanation);
// Whether its sentence names a time.
bool has_predicted_start(const WaitExplanation& explanation);

}  // namespace regatta::sched
