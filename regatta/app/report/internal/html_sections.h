// report/internal/html_sections.h: the sections of report.html, in page order; each is HTML, or ""
// when the run has nothing for it.
#pragma once

#include <string>

#include "regatta/app/report/run_result.h"

namespace regatta::report {

// The goal of the prediction: within 15 % of the measurement.
inline constexpr double kGoodError = 0.15;

std::string header_section(const RunResult& result);    // html_summary.cc
std::string figures_section(const RunResult& result);   // html_summary.cc
std::string footer_section(const RunResult& result);    // html_summary.cc
std::string phases_section(const RunResult& result);    // html_phases.cc
std::string timeline_section(const RunResult& result);  // html_timeline.cc
std::string plan_section(const RunResult& result);      // html_plan.cc
std::string steps_section(const RunResult& result);     // html_curves.cc: loss, step times
std::string sweep_section(const RunResult& result);     // html_curves.cc
std::string cluster_section(const RunResult& result);   // html_cluster.cc: the drawing
std::string traffic_section(const RunResult& result);   // html_traffic.cc

}  // namespace regatta::report
