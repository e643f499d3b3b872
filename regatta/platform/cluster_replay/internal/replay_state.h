// cluster_replay/internal/replay_state.h: the cluster and the queue of a replay, and how actions
// and failures change them.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "regatta/base/core/result.h"
#include "regatta/platform/cluster_replay/cluster_replay.h"
#include "regatta/platform/cluster_replay/internal/curve_recorder.h"
#include "regatta/platform/cluster_replay/internal/device_ledger.h"
#include "regatta/platform/cluster_replay/internal/device_use.h"
#include "regatta/platform/cluster_replay/internal/event_log.h"
#include "regatta/platform/cluster_replay/internal/job_run.h"
#include "regatta/platform/cluster_replay/internal/run_time_estimator.h"

namespace regatta::cluster_replay {

inline constexpr Seconds kNever{-1};  // first start or end of a job that has none

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
  Status apply(const sched::SchedulingDecision& decision);

  // The least interval of all demands, at whose end they may change; 0: no job has one.
  double demand_interval() const { return demand_interval_; }
  // An interval ends now, and another begins.
  void begin_interval();
  // Whether a job runs or waits whose demand its scheduler follows.
  bool has_services() const { return services_ > 0; }
  // Divides devices anew whose jobs or demands changed, and plans ends by that.
  void settle();

  ReplayResult finish_result(Seconds measured_until);

 private:
  struct Job {
    double pending_since = 0;
    double completed = 0;  // work that is kept while it waits
    int version = 0;
    int evictions = 0;
    int running = -1;  // index of its run
    int pending = -1;  // index in the queue
    // With a demand, in this interval:
    double demand = 0;
    int MissedIntervals::*missed = nullptr;  // why its demand was not served, if so
    std::vector<double> ready;               // when each replica of a service works
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
  void plan_end(int job);
  Status apply_mixes(const sched::SchedulingDecision& decision);
  void end_needless_mixes();

  // Jobs with a demand are in replay_state_demand.cc.
  void set_demand(int job);
  void set_ready(int job, std::span<const sched::ReplicaPlacement> before);
  void extend_history(int job, double amount);
  sched::JobRequest& request_of(int job);
  double served_by_replicas(int job) const;  // demand that they can serve
  int MissedIntervals::*why_missed(int job) const;
  void watch_demands(double seconds);
  void refresh_profiles();
  double used_devices(int run) const;
  // Recomputes what the jobs with such a replica do.
  void node_changed(int node);
  void add_failure(sched::ClusterNode& node);
  CurvePoint level() const;
  // Adds the time until `now` to what jobs hold and lose.
  void add_costs(double now);

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
  DeviceUse use_;
  std::vector<int> active_;  // jobs with a demand that were submitted and have not ended
  double demand_interval_ = 0;
  double interval_begun_ = 0;
  double next_profiles_ = 0;
  int services_ = 0;
  double delayable_ = 0;  // demand without a latency target, in device-seconds
  double delayed_ = 0;    // of it, not served in its interval
  CurveRecorder curves_;
  EventLog log_;
  RunTimeEstimator estimator_;
  ReplayResult result_;
  double waiting_devices_ = 0;
  double requeued_devices_ = 0;  // of waiting jobs that were evicted
};

}  // namespace regatta::cluster_replay
