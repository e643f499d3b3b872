// cli/internal/gpu_hook_report.h: makes sure that the program of `regatta gpu run` has loaded the
// hook, as the hook itself reports (sharing/internal/hook/hook_loading.cc): no library in front of
// a program says whether its loader took it.
#pragma once

#include <string>

#include "regatta/base/core/result.h"

namespace regatta::cli {

// Before this process becomes `program`: starts a process that waits for the report, and kills this
// one when it has loaded other libraries, or 10 s have passed, without one. That process ends with
// the report, or with this one; it is no child of this one, and keeps only standard error.
Status watch_hook_report(const std::string& program);

}  // namespace regatta::cli
