// sharing/hook_report.h: how the hook reports that a program has loaded it, to the process that
// waits for that. The hook removes the variable, so what the program starts reports nothing.
#pragma once

namespace regatta::sharing {

// "FD:INODE" of a pipe that the program inherits: the hook writes one byte into it and closes it,
// if the descriptor is that pipe.
inline constexpr const char* kHookReportVariable = "REGATTA_GPU_REPORT";

}  // namespace regatta::sharing
