// train/internal/train_spec_json.h: TrainSpec as JSON, for the message from `run` to the workers.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "regatta/base/core/result.h"
#include "regatta/runtime/train/internal/train_spec.h"

namespace regatta::train {

// The part that is the same for every rank: "job", "strategy", "resume", "trace_from_step",
// "trace_to_step". The session adds the rest.
nlohmann::json spec_to_json(const TrainSpec& spec);

// Fails with kInvalidInput naming the key that is missing or of another type.
Result<TrainSpec> spec_from_json(const nlohmann::json& json);

}  // namespace regatta::train
