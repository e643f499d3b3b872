// report/sched_report.h: decisions of the scheduler and replays of traces: text for people, JSON
// for programs, a page. Texts end with a newline.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "regatta/platform/cluster_replay/replay_result.h"
#include "regatta/platform/sched/cluster_snapshot.h"
#include "regatta/platform/sched/decide.h"
#include "regatta/platform/sched/scheduling_policy.h"
#include "regatta/platform/sched/wait_explanation.h"

namespace regatta::report {

// `regatta sched decide`: actions in the order in which they are carried out, and what waits.
std::string decision_text(const sched::ClusterSnapshot& snapshot,
                          const sched::SchedulingPolicy& policy,
                          const sched::SchedulingDecision& decision);
// The keys of docs/formats/sched_decision.md.
nlohmann::json decision_json(const sched::ClusterSnapshot& snapshot, const sched::JobQueue& queue,
                             const sched::SchedulingPolicy& policy,
                             const sched::SchedulingDecision& decision);

// Why a job waits: for JSON, and as a part of a sentence.
std::string wait_cause_name(sched::WaitCause cause);
std::string wait_cause_text(sched::WaitCause cause);

// `regatta sched why`: a pending job, after predict_wait(); the snapshot's time is 0.
std::string wait_text(const sched::WaitExplanation& explanation);
nlohmann::json wait_json(const sched::WaitExplanation& explanation);

// `regatta sched replay` and `regatta sched simulate`: one load under one or more policies.
struct PolicyReplay {
  std::string policy;
  cluster_replay::ReplayResult result;
};
struct ReplayReport {
  std::string load;     // "philly_jobs.csv", "generated"
  std::string cluster;  // its file
  int nodes = 0;
  int devices = 0;
  double price = 0;                   // of a device and hour; 0: not given
  std::vector<PolicyReplay> replays;  // at least one
};
// A table with a row for each policy, and what the first has over the last.
std::string replay_text(const ReplayReport& report);
// The keys of docs/formats/sched_replay.md.
nlohmann::json replay_json(const ReplayReport& report);
// A page: key figures, curves of allocation, fragmentation, waiting and evictions of all policies.
std::string replay_html(const ReplayReport& report);

}  // namespace regatta::report
