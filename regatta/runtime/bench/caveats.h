// bench/caveats.h: what a reader has to know beside the figures of a run. Pure.
#pragma once

#include <string>
#include <vector>

#include "regatta/runtime/bench/timing.h"
#include "regatta/runtime/comm/tuner.h"

namespace regatta::bench {

// Those of the task's operation and sizes, the smallest first: other calls are made on the way.
std::vector<comm::TuningChoice> enum_choices(const BenchTask& task,
                                             const std::vector<comm::TuningChoice>& all);

// A sentence for each setting that was forced and is in none, or not in all, of the `choices` of
// the task.
std::vector<std::string> describe_unused_settings(const BenchTask& task,
                                                  const std::vector<comm::TuningChoice>& choices);

// A sentence where a size is no whole number of elements for each rank; none else.
std::vector<std::string> describe_rounding(const BenchTask& task);

// A sentence where a peer cannot show what it does with so many ranks on so many cores; none else.
std::vector<std::string> describe_oversubscription(const BenchTask& task,
                                                   const std::vector<std::string>& peers,
                                                   int cores);

}  // namespace regatta::bench
