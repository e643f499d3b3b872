// sharing/internal/daemon/listener.h: the socket at which the daemon accepts clients and operators.
#pragma once

#include <string>

#include "regatta/base/core/result.h"
#include "regatta/base/os/unique_fd.h"

namespace regatta::sharing {

// Listens at `path`, open to all users: credentials decide what a process may request. Creates the
// folder. kConflict when another daemon answers there.
Result<os::UniqueFd> open_listener(const std::string& path);

}  // namespace regatta::sharing
