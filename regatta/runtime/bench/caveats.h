// bench/caveats.h: notes that a reader needs beside the figures of a run. Pure.
#pragma once

#include <string>
#include <vector>

#include "regatta/runtime/bench/timing.h"
#include "regatta/runtime/comm/tuner.h"

namespace regatta::bench {

// The choices for the task's operation and sizes, the smallest first: a run makes other calls too.
std::vector<comm::TuningChoice> choices_for_task(const BenchTask& task,
                                                 const std::vector<comm::TuningChoice>& all);

// A sentence for each forced setting that some or all of the `choices` of the task do not have.
std::vector<std::string> describe_unused_settings(const BenchTask& task,
                                                  const std::vector<comm::TuningChoice>& choices);

// A sentence where a size is no whole number of elements for each rank; none else.
std::vector<std::string> describe_rounding(const BenchTask& task);

// A sentence where a peer's figures mean little with so many ranks on so many cores; none else.
std::vector<std::string> describe_oversubscription(const BenchTask& task,
                                                   const std::vector<std::string>& peers,
                                                   int cores);

}  // namespace regatta::bench
