// replay/internal/log_settings.h: what the lines before the steps of a log say of its run.
#pragma once

#include <string>
#include <vector>

#include "regatta/planning/replay/training_log.h"

namespace regatta::replay {

// Arguments and configurations as Megatron-LM, Megatron-Bridge, NeMo and DeepSpeed print them, the
// first of each counts, and the lines of torchtitan that say the same.
LoggedSettings logged_settings(const std::vector<std::string>& lines);

}  // namespace regatta::replay
