// report/text_report.h: how a run ends on the terminal.
#pragma once

#include <string>

#include "regatta/app/report/run_result.h"

namespace regatta::report {

// Predicted beside measured per phase, the comparison and the sweep; ends with a newline.
std::string text_report(const RunResult& result);

}  // namespace regatta::report
