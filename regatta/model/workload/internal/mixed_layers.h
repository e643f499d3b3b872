// workload/internal/mixed_layers.h: the keys of job files and JSON that make layers differ from
// each other (docs/formats/job.md), and what they must agree in.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "regatta/base/core/json.h"
#include "regatta/base/core/yaml_map.h"
#include "regatta/model/workload/model.h"

namespace regatta::workload {

std::vector<std::string> mixed_layer_keys();

// Keep what `model` has where a key is missing.
void read_mixed_layers(const YamlMap& map, ModelShape& model);
void read_mixed_layers(const JsonReader& reader, ModelShape& model);

// Only those that differ from a model of equal layers.
void add_mixed_layers(nlohmann::json& object, const ModelShape& model);

// A key that contradicts the rest of the model, and how.
struct ModelContradiction {
  std::string key;
  std::string problem;
};
std::optional<ModelContradiction> find_layer_contradiction(const ModelShape& model);

}  // namespace regatta::workload
