// coll/tuning/tuning_file.h: what was chosen and measured, as JSON for the next run:
// docs/formats/tuning.md.
#pragma once

#include <string>
#include <vector>

#include "regatta/coll/tuning/tuner.h"
#include "regatta/core/result.h"

namespace regatta::coll {

std::string format_tuning(const std::vector<Choice>& choices);
// "" gives nothing. kInvalidInput names the key that is missing or wrong.
Result<std::vector<Choice>> parse_tuning(const std::string& text);

}  // namespace regatta::coll
