// workload/job_json.h: jobs, strategies and spans as JSON, for what travels between programs and
// for result.json. Keys are those of the job file, but that data.text is data_text here and what a
// Job does not hold (optimizer.kind, model.from) is left out; defaults are filled in, kv_heads and
// head_dim 0 stand for the usual ones, data_text "" and steps 0 for none. A model without latent
// attention or experts has none of their keys. Those of a request may be missing, and those of
// models and strategies that earlier versions did not write. Times are plain seconds with the
// suffix _s. Reading gives back finite values bit for bit, and fails with kInvalidInput naming the
// object and, where one is at fault, the key.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "regatta/base/core/result.h"
#include "regatta/model/workload/job.h"
#include "regatta/model/workload/timeline.h"

namespace regatta::workload {

// {"kind":"gpt","layers":8,"hidden":384,...}
nlohmann::json model_to_json(const ModelShape& model);
Result<ModelShape> model_from_json(const nlohmann::json& json);

// {"tp":2,"pp":4,"dp":1,"cp":1,...,"recompute":"none","overlap":true}
nlohmann::json strategy_to_json(const Strategy& strategy);
Result<Strategy> strategy_from_json(const nlohmann::json& json);

// Only what the user fixed.
nlohmann::json request_to_json(const StrategyRequest& request);
Result<StrategyRequest> request_from_json(const nlohmann::json& json);

nlohmann::json job_to_json(const Job& job);
Result<Job> job_from_json(const nlohmann::json& json);

// {"rank":0,"phase":"forward","step":3,"micro_batch":1,"layer":-1,"background":false,
//  "start_s":...,"duration_s":...}
nlohmann::json span_to_json(const Span& span);
Result<Span> span_from_json(const nlohmann::json& json);
nlohmann::json timeline_to_json(const Timeline& timeline);
Result<Timeline> timeline_from_json(const nlohmann::json& json);

// {"forward_s":...,...}: every phase.
nlohmann::json phases_to_json(const PhaseTimes& phases);
Result<PhaseTimes> phases_from_json(const nlohmann::json& json);

}  // namespace regatta::workload
