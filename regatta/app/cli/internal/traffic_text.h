// cli/internal/traffic_text.h: analyzed traffic as tables and as JSON (docs/formats/traffic.md).
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "regatta/network/diag/traffic_analysis.h"

namespace regatta::cli {

std::string traffic_text(const diag::TrafficAnalysis& analysis);
nlohmann::json traffic_json(const diag::TrafficAnalysis& analysis);

// Its parts, for the page too.

std::size_t hidden_bursts(const diag::PairTraffic& pair);
std::string main_operation(const diag::PairTraffic& pair);  // "all_reduce of 4 MiB (93 %)"
std::string step_line(const diag::JobTraffic& job);         // the step time by flows and by ranks
std::vector<const diag::PairTraffic*> pairs_by_bytes(const diag::JobTraffic& job);  // most first
std::string inferred_text(const diag::InferredJob& one);                            // a line

}  // namespace regatta::cli
