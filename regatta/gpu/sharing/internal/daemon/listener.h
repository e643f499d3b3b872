// sharing/internal/daemon/listener.h: the socket at which clients and operators ask.
#pragma once

#include <string>

#include "regatta/base/core/result.h"
#include "regatta/base/os/unique_fd.h"

namespace regatta::sharing {

// Listens at `path`, open to all: who may ask what is known by their credentials. The folder is
// made where it is missing. kConflict when another daemon answers there.
Result<os::UniqueFd> open_listener(const std::string& path);

}  // namespace regatta::sharing
