// cli/internal/traffic_html.h: analyzed traffic as a page.
#pragma once

#include <string>

#include "regatta/network/diag/traffic_analysis.h"

namespace regatta::cli {

// One file that loads nothing from outside. `place`: the lab or machine; text.
std::string traffic_html(const diag::TrafficAnalysis& analysis, const std::string& place);

}  // namespace regatta::cli
