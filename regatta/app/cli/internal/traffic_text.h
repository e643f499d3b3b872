// cli/internal/traffic_text.h: a traffic view as tables, as JSON (docs/formats/traffic.md) and as a
// page.
#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "regatta/app/cli/internal/traffic_analysis.h"

namespace regatta::cli {

std::string traffic_text(const TrafficAnalysis& view);
nlohmann::json traffic_json(const TrafficAnalysis& view);
// Without scripts; asks for nothing from outside.
std::string traffic_html(const TrafficAnalysis& view, const std::string& where);

}  // namespace regatta::cli
