// workload/internal/strategy_yaml.h: the map `strategy:` of a job file (docs/formats/job.md).
#pragma once

#include "regatta/base/core/yaml_map.h"
#include "regatta/model/workload/model.h"
#include "regatta/model/workload/strategy.h"

namespace regatta::workload {

// The values that the map fixes; errors go to its document.
StrategyRequest read_strategy(const YamlMap& map);

// Refuses what no completion of `request` can mend: keys that contradict each other or the job, at
// the line of the key. The search checks the rest.
void check_strategy(const YamlMap& map, const StrategyRequest& request, const ModelShape& model,
                    int global_batch);

}  // namespace regatta::workload
