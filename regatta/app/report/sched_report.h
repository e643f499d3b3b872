// report/sched_report.h: decisions of the scheduler: text for people, JSON for programs. Texts end
// with a newline.
#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "regatta/platform/sched/cluster_snapshot.h"
#include "regatta/platform/sched/decide.h"
#include "regatta/platform/sched/scheduling_policy.h"
#include "regatta/platform/sched/start_prediction.h"

namespace regatta::report {

// `regatta sched decide`: actions in the order in which they are carried out, and what waits.
std::string decision_text(const sched::ClusterSnapshot& snapshot, const sched::JobQueue& queue,
                          const sched::SchedulingPolicy& policy,
                          const sched::SchedulingDecision& decision);
// The keys of docs/formats/sched_state.md.
nlohmann::json decision_json(const sched::ClusterSnapshot& snapshot, const sched::JobQueue& queue,
                             const sched::SchedulingPolicy& policy,
                             const sched::SchedulingDecision& decision);

// Why a job waits: for JSON, and as a part of a sentence.
std::string wait_cause_name(sched::WaitCause cause);
std::string wait_cause_text(sched::WaitCause cause);

// `regatta sched why`: a pending job.
struct WaitExplanation {
  std::string job;
  sched::SchedulingDecision decision;  // at the same moment
  sched::BlockingSet blocking;
  sched::StartPrediction prediction;
};
std::string wait_text(const WaitExplanation& explanation);
nlohmann::json wait_json(const WaitExplanation& explanation);

}  // namespace regatta::report
