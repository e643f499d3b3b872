// cli/internal/probe_run.h: probes a lab or real servers, prints what is found, and reports it to a
// healer.
#pragma once

#include "regatta/app/cli/internal/probe_target.h"
#include "regatta/base/core/result.h"

namespace regatta::cli {

// Until its duration is over, or until Ctrl-C.
Status run_probe(const ProbeOptions& options);

}  // namespace regatta::cli
