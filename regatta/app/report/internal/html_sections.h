// report/internal/html_sections.h: the sections of report.html, in page order; each is HTML, or ""
// when the run has nothing for it.
#pragma once

#include <string>
#include <string_view>

#include "regatta/app/report/internal/html_text.h"
#include "regatta/app/report/run_result.h"

namespace regatta::report {

// The stated error of a prediction: the measurement is within 15 % of it.
inline constexpr double kStatedError = 0.15;

// "bad" for a run that is slower than predicted by more than the stated error; else "".
std::string_view deviation_style(const PlanRun& run);
std::string deviation_html(const PlanRun& run);  // "+4.1 %" in that style

PageFrame frame_of(const RunResult& result);            // html_sections_summary.cc
std::string tiles_section(const RunResult& result);     // html_sections_summary.cc
std::string phases_section(const RunResult& result);    // html_sections_phases.cc
std::string timeline_section(const RunResult& result);  // html_sections_timeline.cc
std::string plan_section(const RunResult& result);      // html_sections_plan.cc
std::string steps_section(const RunResult& result);     // html_sections_curves.cc: loss, step times
std::string sweep_section(const RunResult& result);     // html_sections_curves.cc
std::string cluster_section(const RunResult& result);   // html_sections_cluster.cc: the drawing
std::string traffic_section(const RunResult& result);   // html_sections_traffic.cc

}  // namespace regatta::report
