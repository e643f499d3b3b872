// workload/model_presets.h: published models by name, each with its source.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "regatta/model/workload/model.h"

namespace regatta::workload {

struct ModelPreset {
  ModelShape model;    // model.preset is the name
  std::string source;  // paper and table
};

// nullptr when there is no preset of that name.
const ModelPreset* find_model_preset(std::string_view name);

// In the order of the table: what messages offer as a remedy.
std::vector<std::string> model_preset_names();

}  // namespace regatta::workload
