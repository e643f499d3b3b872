// bench/mixing/mixing_report.h: the figures of regatta-mixing, as JSON.
#pragma once

#include <filesystem>

#include <nlohmann/json.hpp>

#include "regatta/base/core/result.h"
#include "regatta/base/core/units.h"

namespace regatta::mixing {

struct ReportOptions {
  std::filesystem::path folder;  // holds gentd and gavel
  Bytes memory{8LL << 30};       // of each pod; the trace says nothing of it
};

// {"interference": [...], "patterns": {...}, "placements": [...], "modes": [...], "tidal": [...]}.
// Fails with kInvalidInput for a missing or wrong table.
Result<nlohmann::ordered_json> mixing_report(const ReportOptions& options);

}  // namespace regatta::mixing
