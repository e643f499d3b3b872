// report/internal/replay_figures.h: figures of replays that text and page share.
#pragma once

#include <string>
#include <vector>

#include "regatta/app/report/sched_report.h"

namespace regatta::report {

// Work of the jobs that ended, over that work and what evictions and failures undid.
double effective_share(const cluster_replay::ReplayResult& result);

// A heading and a row for each policy.
std::vector<std::vector<std::string>> replay_rows(const ReplayReport& report);

// Waiting under the first policy over that under the last; "" for one policy.
std::string replay_sentence(const ReplayReport& report);

}  // namespace regatta::report
