// sharing/hook_loading.h: how programs come to load the hook: the folder with libregatta_gpu.so and
// with the libraries that take the place of the CUDA driver and of NVML, and how the hook reports
// that it is there.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "regatta/base/core/result.h"

namespace regatta::sharing {

// "FD:INODE" of a pipe that the program inherits: the hook writes one byte into it and closes it,
// if the descriptor is that pipe. It removes the variable, so what the program starts reports
// nothing.
inline constexpr const char* kHookReportVariable = "REGATTA_GPU_REPORT";

// A folder from which every user can load the hook: beside the daemon's socket, or in /run; made at
// its first use. kInvalidInput, with the remedy, when there is none: a program that cannot load the
// hook would not be limited.
Result<std::string> find_hook_folder(const std::string& daemon_socket);

// The variables of a program that loads the hook from the folder: `preload` and `library_path` are
// what LD_PRELOAD and LD_LIBRARY_PATH had, "" where they were not set, and come behind it.
std::vector<std::pair<std::string, std::string>> hook_variables(const std::string& folder,
                                                                const std::string& preload,
                                                                const std::string& library_path);

}  // namespace regatta::sharing
