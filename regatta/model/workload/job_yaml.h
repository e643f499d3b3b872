// workload/job_yaml.h: reads and validates the job file (docs/formats/job.md).
#pragma once

#include <string>
#include <string_view>

#include "regatta/base/core/result.h"
#include "regatta/model/workload/internal/model_yaml.h"
#include "regatta/model/workload/job.h"

namespace regatta::workload {

// The job that `text` describes, presets filled in; paths stay as written (see resolve_path()), but
// `load` gets that of a model's file resolved. `file` names it in messages. Fails with
// kInvalidInput naming file, line, key and remedy, and with kUnsupported for what the format knows
// and this version cannot do yet. What it accepts can be planned; workload/runtime_support.h says
// what can be run.
Result<Job> parse_job(std::string_view text, const std::string& file,
                      const ModelLoader& load = nullptr);

// The map under `strategy:` alone, as the flag --strategy '{tp: 2, pp: 4}' gives it, or "auto".
// `origin` names it in messages. What it says about `model` is checked by micro_batches().
Result<StrategyRequest> parse_strategy(std::string_view text, const std::string& origin);

// `path` itself when absolute, else relative to the folder of `job_file`.
std::string resolve_path(const std::string& job_file, const std::string& path);

}  // namespace regatta::workload
