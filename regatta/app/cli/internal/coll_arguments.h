// cli/internal/coll_arguments.h: the arguments that the commands which run collectives share: what
// is called, where the ranks run, and what is forced.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "regatta/base/core/result.h"
#include "regatta/runtime/bench/lab_environment.h"
#include "regatta/runtime/bench/timing.h"

namespace regatta::cli {

struct CollArguments {
  std::string op;
  std::string sizes = "1K:64M";
  int ranks = 2;
  std::string cluster;
  bool go_round = false;
  std::string algorithm = "automatic";
  std::string chunk;
  int connections = 0;
  bool model_only = false;
  std::string tuning;  // a file
  std::string ports;   // "": planned where that can be
};

// Adds them to a command; `arguments` outlives it.
void add_coll_arguments(CLI::App& command, CollArguments& arguments);

// The task of the benchmark's ranks; kInvalidInput for sizes that are none, for places on the
// servers of no cluster, and for a tuning file that is missing, empty or none.
Result<bench::BenchTask> task_of(const CollArguments& arguments);

// The emulated servers; nothing where the ranks are processes of this machine.
// Where ports are planned, for `task`.
Result<std::optional<bench::LabEnvironment>> open_ground(const CollArguments& arguments,
                                                         const bench::BenchTask& task);

}  // namespace regatta::cli
