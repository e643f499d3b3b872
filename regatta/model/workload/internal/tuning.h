// workload/internal/tuning.h: the map `tuning:` of a job file (docs/formats/job.md) and its JSON.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "regatta/base/core/json.h"
#include "regatta/base/core/yaml_map.h"
#include "regatta/model/workload/model.h"

namespace regatta::workload {

// Errors go to the map's document.
Adapters read_tuning(const YamlMap& map);
Adapters read_tuning(const JsonReader& reader);

nlohmann::json tuning_to_json(const Adapters& adapters);

}  // namespace regatta::workload
