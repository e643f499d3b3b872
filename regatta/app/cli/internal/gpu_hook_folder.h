// cli/internal/gpu_hook_folder.h: the folder from which the programs of `regatta gpu run` load the
// hook: libregatta_gpu.so, and the libraries that take the place of the CUDA driver and of NVML.
#pragma once

#include <string>

#include "regatta/base/core/result.h"

namespace regatta::cli {

// Has the programs that this process becomes and starts load the hook, by LD_PRELOAD and in place
// of the driver, from a folder that every user can load from: beside the daemon's socket, or in
// /run. kInvalidInput, with the remedy, when there is none: a program that cannot load the hook
// would not be limited.
Status load_hook(const std::string& daemon_socket);

// Has no program gain rights by its file from now on: the loader would take nothing from the
// environment for it.
Status forbid_new_privileges();

}  // namespace regatta::cli
