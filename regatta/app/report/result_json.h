// report/result_json.h: result.json, and what `regatta run --json` prints: every figure of a run
// for programs. Keys carry their unit as a suffix: step_time_s, bytes, rate_Bps.
//
//   plan.strategy, plan.placement, predicted.step_time_s, predicted.phases.forward_s,
//   measured.step_time_s, measured.phases.forward_s, measured.steps[].loss, measured.traffic[],
//   prediction_error, compare.speedup, sweep.spearman, sweep.plans[], candidates[], rejected[],
//   job, cluster
#pragma once

#include <string>

#include <nlohmann/json.hpp>

#include "regatta/app/report/run_result.h"

namespace regatta::report {

// `compare` and `sweep` are null when the run had none; `sweep.spearman` is null below 3 plans, and
// when all predictions or all measurements are equal. The same result gives the same bytes.
nlohmann::ordered_json result_json(const RunResult& result);

// The file: indented by one space, with a newline at the end.
std::string result_json_text(const RunResult& result);

}  // namespace regatta::report
