// workload/internal/model_yaml.h: the map `model:` of a job file (docs/formats/job.md).
#pragma once

#include <functional>
#include <string>

#include "regatta/base/core/result.h"
#include "regatta/base/core/yaml_map.h"
#include "regatta/model/workload/model.h"

namespace regatta::workload {

// Reads the file that `from:` names: the caller touches the machine, not the parser.
using ModelLoader = std::function<Result<ModelShape>(const std::string& path)>;

// The shape that `map` writes out, or that of its preset or file with what else it says in place.
// Errors go to the map's document; without `load`, `from:` is one.
ModelShape read_model(const YamlMap& map, const ModelLoader& load);

}  // namespace regatta::workload
