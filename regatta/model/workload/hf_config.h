// workload/hf_config.h: the shape of a model from the `config.json` of a Hugging Face repository.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "regatta/base/core/result.h"
#include "regatta/model/workload/model.h"

namespace regatta::workload {

// `file` names the text in messages. The keys are those of each `model_type`; a missing key has the
// default of that type. Fails with kInvalidInput, naming the key and the remedy, for a text that is
// no JSON object, an unknown type, and sizes that are missing, no integer or out of range. `preset`
// is left empty, `seq` is the longest that the file allows.
Result<ModelShape> parse_hf_config(std::string_view text, const std::string& file);

// The values of `model_type` that parse_hf_config() knows.
std::vector<std::string> hf_model_types();

}  // namespace regatta::workload
