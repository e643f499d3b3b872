// cli/internal/sched_inputs.h: the files that the commands of `regatta sched` read.
#pragma once

#include <optional>
#include <string>

#include "regatta/base/core/result.h"
#include "regatta/platform/sched/scheduling_policy.h"
#include "regatta/platform/sched/state_file.h"

namespace regatta::cli {

// kInvalidInput where the file, or a cluster file that it names, is wrong.
Result<sched::SchedulerState> load_state(const std::string& path);

// A policy that comes with regatta, by its name, or the policy of a file. `interference`: that of
// the cluster, where it is known, for a policy whose file names none.
Result<sched::SchedulingPolicy> load_policy(const std::string& name_or_path,
                                            std::optional<double> interference = {});

}  // namespace regatta::cli
