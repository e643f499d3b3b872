// sharing/internal/hook/report.h: one line to standard error, from inside a program that is not
// ours.
#pragma once

#include <string_view>

#include "regatta/gpu/device/abi/cuda_sharing.h"

namespace regatta::sharing::hook {

// "regatta gpu: message"; a program gets at most a few of them. Without memory of its own.
void report(std::string_view message);

// For a call that fails by a fault of the hook itself; what the program is told.
CUresult report_fault(const char* symbol);

}  // namespace regatta::sharing::hook
