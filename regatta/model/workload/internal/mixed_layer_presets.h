// workload/internal/mixed_layer_presets.h: published models of which not all layers are alike.
#pragma once

#include <vector>

#include "regatta/model/workload/model.h"

namespace regatta::workload {

std::vector<ModelPreset> mixed_layer_presets();

}  // namespace regatta::workload
