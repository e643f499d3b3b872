// lab/internal/holder.h: the process behind a lab: builds it, keeps its namespaces open, answers
// control requests. Listed as "regatta-lab NAME".
#pragma once

#include "regatta/base/core/result.h"
#include "regatta/network/lab/internal/blueprint.h"
#include "regatta/network/lab/internal/state.h"

namespace regatta::lab {

// Forks the holder into a session of its own, waits until it has built `blueprint` in `folder`
// (which exists) and returns what it reports. On failure nothing of it runs any more, but what it
// saved in state.json may need reaping. kTimeout after 60 s.
Result<LabInfo> start_holder(const Blueprint& blueprint, const std::string& folder,
                             const UpOptions& options);

}  // namespace regatta::lab
