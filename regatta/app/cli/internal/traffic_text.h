// cli/internal/traffic_text.h: analyzed traffic as tables and as JSON (docs/formats/traffic.md).
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "regatta/app/cli/internal/traffic_analysis.h"

namespace regatta::cli {

std::string traffic_text(const TrafficAnalysis& analysis);
nlohmann::json traffic_json(const TrafficAnalysis& analysis);

// Its parts, for the page too.

std::size_t hidden_bursts(const PairTraffic& pair);
std::string main_operation(const PairTraffic& pair);  // "all_reduce of 4 MiB (93 %)"
std::string step_line(const JobTraffic& job);         // the step time by flows and by ranks
std::vector<const PairTraffic*> pairs_by_bytes(const JobTraffic& job);  // most first
std::string inferred_text(const InferredJob& one);                      // a line

}  // namespace regatta::cli
