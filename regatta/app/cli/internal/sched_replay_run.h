// cli/internal/sched_replay_run.h: replays a load with each of several policies, and prints and
// writes what that shows: `regatta sched replay` and `regatta sched simulate`.
#pragma once

#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "regatta/base/core/result.h"
#include "regatta/platform/cluster_replay/cluster_replay.h"

namespace regatta::cli {

struct ReplayRunOptions {
  std::string cluster;
  std::vector<std::string> policies;  // at least one
  std::string interval = "60s";
  std::string html;
  std::string log;
  double price = 0;
  std::string interference;  // a factor, or a table of pairs; "": the default of a replay
  bool json = false;
};
void add_replay_options(CLI::App& command, ReplayRunOptions& options);

// `load`: what the report calls it; `inputs`: files that must not be written.
Status run_replays(const ReplayRunOptions& options, const std::string& load,
                   const cluster_replay::ReplayInput& input, std::vector<std::string> inputs);

}  // namespace regatta::cli
