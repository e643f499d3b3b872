// cluster_replay/cluster_replay.h: runs a scheduler over the jobs of a trace in simulated time, and
// tells how long jobs waited and how full the cluster was. Pure.
#pragma once

#include <functional>
#include <string_view>
#include <vector>

#include "regatta/base/core/result.h"
#include "regatta/base/core/units.h"
#include "regatta/platform/cluster_replay/replay_result.h"
#include "regatta/platform/cluster_replay/traced_job.h"
#include "regatta/platform/sched/cluster_snapshot.h"
#include "regatta/platform/sched/decide.h"

namespace regatta::cluster_replay {

struct NodeEvent {
  Seconds at;
  int node = 0;
  sched::NodeHealth health = sched::NodeHealth::kFailed;  // from then on
  bool is_planned = false;  // a failure that its history leaves out, as the node is not the cause
};

struct ReplayInput {
  std::vector<sched::ClusterNode> nodes;
  std::vector<TracedJob> jobs;         // by rising time of submission; names are unique
  std::vector<NodeEvent> node_events;  // by rising time
  sched::QuotaTree quotas;
};

struct ReplayProgress {
  Seconds now;
  int submitted = 0;
  int ended = 0;
  int waiting = 0;
};

// Decides for a snapshot and a queue: sched::decide() with a policy, or another scheduler.
using DecisionFunction = std::function<Result<sched::SchedulingDecision>(
    const sched::ClusterSnapshot&, const sched::JobQueue&)>;

struct ReplayOptions {
  Seconds decision_interval;  // decisions are at least so far apart; 0: one at each event
  // While jobs wait a decision is made so long after the last, for rules that depend on time; 0:
  // at events alone.
  Seconds repeat_interval;
  // Jobs without an estimated run time get the one that RunTimeEstimator has when they are
  // submitted.
  bool estimates_run_times = true;
  // So often, running jobs whose Role::duty is known get the profile of what they were seen to
  // need; 0: never.
  Seconds profile_interval;
  // Where jobs share a device: what they take of each other (mixing/interference.h), the link over
  // which memory is swapped, and the length of a turn.
  double interference = 0.15;
  BytesPerSecond link{25e9};
  Seconds lease{60};
  // Utilisation and fragmentation count between these times; until 0: to the last submission,
  // or the last end of a job with a demand.
  Seconds measured_from;
  Seconds measured_until;
  // Nothing happens from then on; 0: the replay goes on until all has ended.
  Seconds stops_at;
  // Called before each decision; may change the quotas, by a forecast for example.
  std::function<void(const sched::ClusterSnapshot&, sched::JobQueue&)> before_decision;
  // Called after each decision, before it is carried out.
  std::function<void(const sched::ClusterSnapshot&, const sched::JobQueue&,
                     const sched::SchedulingDecision&)>
      after_decision;
  // Called with each job that starts for the first time.
  std::function<void(const sched::JobRequest&, Seconds)> on_first_start;
  // Called with each job that ends, and the run time that the trace gives it.
  std::function<void(const sched::JobRequest&, Seconds)> on_end;
  std::function<void(std::string_view)> log;  // a line of each event
  std::function<double()> clock;              // seconds, to time decisions
  std::function<void(const ReplayProgress&)> progress;
};

// A job loses the work since its last checkpoint when it is evicted or moved or loses a replica;
// starting again takes its restart time. A job that changes its size keeps its work and restarts.
// Writing checkpoints and a placement over several domains slow it down as its request says. Where
// jobs share a device, it gives each of them what mixing/device_division.h says for the mode in the
// snapshot; a gang is as fast as the slowest of its devices. Demands change at the least of their
// intervals. Each interval that ends is added to the history of a service. Two
// replays of equal arguments give equal results, but for the times of decisions. Fails with
// kInvalidInput where jobs or events are not in order, where names come twice, and where a decision
// fails; with kConflict where a decision cannot be carried out.
Result<ReplayResult> replay_cluster(const ReplayInput& input, const DecisionFunction& decide,
                                    const ReplayOptions& options);
// Under a policy that does not size services, those whose demand is known in the trace have all
// their replicas from begin to end.
Result<ReplayResult> replay_cluster(const ReplayInput& input, const sched::SchedulingPolicy& policy,
                                    const ReplayOptions& options);

}  // namespace regatta::cluster_replay
