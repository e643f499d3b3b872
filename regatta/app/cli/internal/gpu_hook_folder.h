// cli/internal/gpu_hook_folder.h: makes the programs of `regatta gpu run` load the hook.
#pragma once

#include <string>

#include "regatta/base/core/result.h"

namespace regatta::cli {

// Has the programs that this process becomes and starts load the hook, by LD_PRELOAD and in place
// of the driver. Errors as find_hook_folder() of sharing/hook_loading.h.
Status load_hook(const std::string& daemon_socket);

// Has no program gain rights by its file from now on: the loader would take nothing from the
// environment for it.
Status forbid_new_privileges();

}  // namespace regatta::cli
