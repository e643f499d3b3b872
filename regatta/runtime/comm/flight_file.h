// comm/flight_file.h: what a rank leaves behind when its world fails: its view as JSON.
// The format: docs/formats/flight.md.
#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "regatta/base/core/result.h"
#include "regatta/runtime/comm/snapshot.h"

namespace regatta::comm {

nlohmann::json view_to_json(const RankView& view);
// kInvalidInput when a key is missing or of another kind; `source` names the text in errors.
Result<RankView> view_from_json(const nlohmann::json& json, const std::string& source);

// <folder>/regatta-flight-<job>-rank<r>.json; "job" where it has no name, other characters than
// letters, digits, '.', '_' and '-' become '_'.
std::string flight_path(const std::string& folder, const RankView& view);
// Makes the folder where it is missing, and replaces an older file.
Status write_flight_file(const std::string& folder, const RankView& view);
Result<RankView> read_flight_file(const std::string& path);

}  // namespace regatta::comm
