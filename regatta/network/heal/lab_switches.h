// heal/lab_switches.h: the switches of a lab (lab/lab.h) for the healer.
#pragma once

#include <memory>

#include "regatta/base/core/result.h"
#include "regatta/network/heal/internal/linux_switches.h"
#include "regatta/network/lab/lab.h"

namespace regatta::heal {

// `graph`: of this lab. For a lab in a user namespace, call lab::enter_user_namespace() first.
Result<std::unique_ptr<LinuxSwitches>> open_lab_switches(const lab::LabInfo& lab,
                                                         const topo::Graph& graph,
                                                         const FabricPaths& paths);

}  // namespace regatta::heal
