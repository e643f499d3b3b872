// bench/cluster_replay/replay_table.h: the rows that the replays print, and what they share.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "regatta/base/core/result.h"
#include "regatta/platform/cluster_replay/cluster_replay.h"
#include "regatta/platform/cluster_replay/start_scorer.h"

namespace regatta::cluster_replay {

struct BenchOptions {
  std::filesystem::path folder;
  bool as_json = false;
  int jobs = 0;                   // the first so many; 0: all
  int predicted_every = 20;       // one waiting job in so many; 0: none
  std::string policy;             // of Philly; empty: all
  std::string curves;             // file of the curves of `mixed`; empty: none
  double interference = 0.15;     // of `mixed`
  std::vector<std::string> only;  // names of replays; empty: all
  bool has(const std::string& name) const;
};

// A policy with the name that the table gives it.
struct NamedPolicy {
  std::string label;
  sched::SchedulingPolicy policy;
};

struct ReplayRow {
  std::string cluster;
  std::string policy;
  ReplayResult result;
  StartScores scores;
  bool is_spot = false;
};

// Replays the input with the policy, predicting starts; prints its progress on standard error.
Result<ReplayRow> replay_row(const ReplayInput& input, const NamedPolicy& policy,
                             const std::string& cluster, const BenchOptions& bench,
                             ReplayOptions options);

void print_head(const BenchOptions& bench, bool is_spot);
void print_row(const BenchOptions& bench, const ReplayRow& row);

Status replay_philly(const BenchOptions& bench);
Status replay_spot(const BenchOptions& bench);
Status replay_mixed(const BenchOptions& bench);

}  // namespace regatta::cluster_replay
