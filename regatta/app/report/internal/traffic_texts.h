// report/internal/traffic_texts.h: the texts that the table and the page of analyzed traffic share.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "regatta/network/diag/traffic_analysis.h"

namespace regatta::report {

std::size_t hidden_bursts(const diag::PairTraffic& pair);
std::string main_operation(const diag::PairTraffic& pair);  // "all_reduce of 4 MiB (93 %)"
std::string step_line(const diag::JobTraffic& job);         // the step time by flows and by ranks
std::vector<const diag::PairTraffic*> pairs_by_bytes(const diag::JobTraffic& job);  // most first
std::string inferred_text(const diag::InferredJob& one);                            // a line

}  // namespace regatta::report
