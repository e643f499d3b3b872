// cli/internal/traffic_text.h: a traffic view as tables, as JSON (docs/formats/traffic.md) and as a
// page.
#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "regatta/app/cli/internal/traffic_view.h"

namespace regatta::cli {

std::string traffic_text(const TrafficView& view);
nlohmann::json traffic_json(const TrafficView& view);
// Without scripts; asks for nothing from outside.
std::string traffic_html(const TrafficView& view, const std::string& where);

}  // namespace regatta::cli
