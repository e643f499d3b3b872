// cli/internal/calibrated_stack.h: the software stack of a plan, calibrated on the user's own runs
// where `regatta plan calibrate` kept a file beside the cluster.
#pragma once

#include <memory>
#include <string>

#include "regatta/base/core/result.h"
#include "regatta/model/cost/software_stack.h"
#include "regatta/model/topo/cluster.h"
#include "regatta/model/workload/job.h"

namespace regatta::cli {

// "examples/cluster.yaml" -> "examples/cluster.calibrated.json".
std::string calibrated_path(const std::string& cluster_path);

// The stack that --stack names, as plan::choose_software_stack() finds it; without a name that of
// the calibration beside the cluster file, if there is one. Says on standard error that a
// calibration is used, or why not: it is of another stack or another device. Fails with
// kInvalidInput where the file is there and cannot be read or is wrong.
Result<std::shared_ptr<const cost::SoftwareStack>> stack_of(const std::string& name,
                                                            const workload::Job& job,
                                                            const topo::Cluster& cluster,
                                                            const std::string& cluster_path);

}  // namespace regatta::cli
