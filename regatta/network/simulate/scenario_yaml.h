// simulate/scenario_yaml.h: reads and validates scenario files (docs/formats/scenario.md) and
// traces.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "regatta/base/core/result.h"
#include "regatta/network/simulate/scenario.h"

namespace regatta::simulate {

// Limits of a scenario.
inline constexpr int kMostItems = 10'000;
inline constexpr int kMostConnections = 64;

// The scenario that `text` describes; its files are not read. `file` names it in messages. Fails
// with kInvalidInput naming file, line, key and remedy.
Result<Scenario> parse_scenario(std::string_view text, const std::string& file);

// Reads lines such as "0.001,s0/0,s1/0,1048576" below the heading "start_s,from,to,bytes", in any
// order. Fails with kInvalidInput naming file, line and remedy.
Result<std::vector<TraceMessage>> parse_trace(std::string_view text, const std::string& file);

}  // namespace regatta::simulate
