// cluster_replay/start_scorer.h: how well the starts of waiting jobs are predicted in a replay.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <vector>

#include "regatta/platform/cluster_replay/cluster_replay.h"
#include "regatta/platform/cluster_replay/internal/run_time_estimator.h"
#include "regatta/platform/sched/scheduling_policy.h"
#include "regatta/platform/sched/start_prediction.h"

namespace regatta::cluster_replay {

// Over predicted jobs that started.
struct StartScores {
  int at_once = 0;          // jobs that started in the first decision after their submission
  int waiting = 0;          // the others
  int scored = 0;           // of the others: one in so many was predicted
  double within_80 = 0;     // share whose start was in the interval
  double median_error = 0;  // of the start, over the time that the job waited from then on
  double raw_within_80 = 0;
  double raw_median_error = 0;  // without calibration
  double median_ratio = 0;      // of the bounds of the interval: latest wait over earliest
};

// Predicts, in the first decision after its submission, the start of each `every`-th job that this
// decision does not start, from the state that it leaves, and with what ended jobs tell by then of
// the run times of all. Predictions are calibrated by those of jobs that have started before.
class StartScorer {
 public:
  StartScorer(sched::SchedulingPolicy policy, sched::StartForecastOptions forecast, int every);

  // Adds itself to the callbacks of `options`, which it outlives.
  void watch(ReplayOptions& options);
  StartScores scores() const;

 private:
  struct Tracked {
    sched::StartPrediction raw;
    sched::StartPrediction made;
    Seconds at;
  };
  struct Score {
    bool is_within = false;
    bool is_raw_within = false;
    double error = 0;
    double raw_error = 0;
    double ratio = 0;
  };
  void see_decision(const sched::ClusterSnapshot& snapshot, const sched::JobQueue& queue,
                    const sched::SchedulingDecision& decision);
  void see_start(const sched::JobRequest& job, Seconds now);

  sched::SchedulingPolicy policy_;
  sched::StartForecastOptions forecast_;
  int every_ = 1;
  sched::StartCalibration calibration_;
  std::deque<sched::JobRequest> recent_;
  RunTimeEstimator estimator_;
  Seconds last_decision_{-1};
  std::map<std::string, Tracked, std::less<>> tracked_;
  std::vector<Score> scores_;
  int at_once_ = 0;
  int waiting_ = 0;
};

}  // namespace regatta::cluster_replay
