// report/report_html.h: report.html: one self-contained page (no request leaves it) that shows a
// run to people: key figures, plan, phases, timeline of every rank, loss, traffic, comparison,
// sweep.
#pragma once

#include <string>

#include "regatta/app/report/run_result.h"

namespace regatta::report {

// The same result gives the same bytes. All text from the run is escaped.
std::string report_html(const RunResult& result);

}  // namespace regatta::report
