// cluster_replay/internal/replay_state.h: the cluster and the queue of a replay, and how actions
// and failures change them.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "regatta/base/core/result.h"
#include "regatta/platform/cluster_replay/cluster_replay.h"
#include "regatta/platform/cluster_replay/internal/curve_recorder.h"
#include "regatta/platform/cluster_replay/internal/device_ledger.h"
#include "regatta/platform/cluster_replay/internal/event_log.h"
#include "regatta/platform/cluster_replay/internal/job_run.h"
#include "regatta/platform/cluster_replay/run_time_estimator.h"

namespace regatta::cluster_replay {

// When the work of a job is done; of no effect where the job has another version then.
struct PlannedEnd {
  double at = 0;
  int job = 0;
  int version = 0;
};

class ReplayState {
 public:
  // `input` and `options` outlive it.
  ReplayState(const ReplayInput& input, const ReplayOptions& options);

  const sched::ClusterSnapshot& snapshot() const { return snapshot_; }
  sched::JobQueue& queue() { return queue_; }
  // Ends that were planned since the last call.
  std::vector<PlannedEnd> take_planned_ends();

  // Time goes on to `now`; nothing changed since the last call but by the functions below.
  void advance(double now);
  Status submit(int job);
  // True where the job had this version.
  bool finish(const PlannedEnd& end);
  Status set_health(const NodeEvent& event);
  // Brings the snapshot up to date: when running jobs wrote their checkpoints.
  void refresh_checkpoints();
  // The same of the demands on services, as far as the options say them.
  void update_demands();
  Status apply(const sched::SchedulingDecision& decision);

  ReplayResult finish_result(Seconds measured_until);

 private:
  struct Job {
    double pending_since = 0;
    double completed = 0;  // work that is kept while it waits
    int version = 0;
    int evictions = 0;
    int running = -1;  // index of its run
    int pending = -1;  // index in the queue
  };

  Result<int> index_of(std::string_view name) const;
  void set_pending(int job, sched::JobRequest request);
  sched::JobRequest take_pending(int job);
  sched::JobRequest take_running(int job);
  Status start(int job, const sched::SchedulingAction& action);
  Status evict(int job, const sched::SchedulingAction& action);
  Status change_places(int job, const sched::SchedulingAction& action);
  // The job works on its replicas from `completed` on, after its restart where `restarts`.
  void run_from(int job, double completed, bool restarts);
  void lose_work(int job, double kept);
  // Recomputes what the jobs with such a replica do.
  void node_changed(int node);
  CurvePoint level() const;

  const ReplayInput& input_;
  const ReplayOptions& options_;
  double now_ = 0;
  sched::ClusterSnapshot snapshot_;
  sched::JobQueue queue_;
  std::vector<JobRun> runs_;  // of snapshot_.running
  std::vector<int> run_jobs_;
  std::vector<int> pending_jobs_;  // of queue_.jobs
  std::vector<Job> jobs_;
  std::unordered_map<std::string, int> by_name_;
  std::vector<PlannedEnd> planned_;
  DeviceLedger ledger_;
  CurveRecorder curves_;
  EventLog log_;
  RunTimeEstimator estimator_;
  ReplayResult result_;
  double waiting_devices_ = 0;
};

}  // namespace regatta::cluster_replay
