// workload/job.h: a training job as the user wrote it, its file and its JSON.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "regatta/base/core/json.h"
#include "regatta/base/core/result.h"
#include "regatta/model/workload/internal/model_yaml.h"
#include "regatta/model/workload/model.h"
#include "regatta/model/workload/strategy.h"
#include "regatta/model/workload/timeline.h"

namespace regatta::workload {

struct Optimizer {  // Adam
  double lr = 3e-4;
  double beta1 = 0.9;
  double beta2 = 0.95;
  double eps = 1e-8;
  double weight_decay = 0;
  double clip_norm = 1.0;  // global gradient norm; 0 = no clipping

  friend bool operator==(const Optimizer&, const Optimizer&) = default;
};

struct Checkpoint {
  std::string folder;  // empty = none
  int every = 0;       // steps; 0 = only at the end

  friend bool operator==(const Checkpoint&, const Checkpoint&) = default;
};

struct Job {
  std::string name;
  ModelShape model;
  std::string data_text;  // a file or folder: bytes are the tokens; empty: not given
  int global_batch = 0;   // samples per step
  Precision precision = Precision::kFp32;
  Optimizer optimizer;
  int steps = 0;  // 0: not given
  std::uint64_t seed = 1;
  StrategyRequest strategy;
  std::vector<std::string> placement;  // rank -> "s0/1"; empty = auto
  Checkpoint checkpoint;

  friend bool operator==(const Job&, const Job&) = default;
};

// Jobs, strategies and spans as JSON, for messages between programs and for result.json. Keys are
// those of the job file, except that data.text is data_text here and the keys that a Job does not
// hold (optimizer.kind, model.from) are left out; defaults are filled in, kv_heads and head_dim 0
// stand for the usual ones, data_text "" and steps 0 for none. A model without latent attention or
// experts has none of their keys. The keys of a request may be missing, and so may those of
// models and strategies that earlier versions did not write. Times are plain seconds with the
// suffix _s. Reading gives back finite values bit for bit, and fails with kInvalidInput naming the
// path of the key.

// A read_...() reads the part of a larger text; the text keeps the errors.

// {"kind":"gpt","layers":8,"hidden":384,...}
nlohmann::json model_to_json(const ModelShape& model);
ModelShape read_model(const JsonReader& reader);

// {"tp":2,"pp":4,"dp":1,"cp":1,...,"recompute":"none","overlap":true}
nlohmann::json strategy_to_json(const Strategy& strategy);
Strategy read_strategy(const JsonReader& reader);

// Only what the user fixed.
nlohmann::json request_to_json(const StrategyRequest& request);
StrategyRequest read_request(const JsonReader& reader);

nlohmann::json job_to_json(const Job& job);
Job read_job(const JsonReader& reader);

// {"rank":0,"phase":"forward","step":3,"micro_batch":1,"layer":-1,"background":false,
//  "start_s":...,"duration_s":...}
nlohmann::json span_to_json(const Span& span);
nlohmann::json timeline_to_json(const Timeline& timeline);
Result<Timeline> timeline_from_json(const nlohmann::json& json);

// {"forward_s":...,...}: every phase.
nlohmann::json phases_to_json(const PhaseTimes& phases);
Result<PhaseTimes> phases_from_json(const nlohmann::json& json);

// Reads and validates the job file (docs/formats/job.md).

// The job that `text` describes, presets filled in; paths stay as written (see resolve_path()), but
// `load` gets that of a model's file resolved. `file` names it in messages. Fails with
// kInvalidInput naming file, line, key and remedy, and with kUnsupported for what the format knows
// and this version cannot do yet. Every accepted job can be planned; workload/runtime_support.h
// says whether it can be run.
Result<Job> parse_job(std::string_view text, const std::string& file,
                      const ModelLoader& load = nullptr);

// The map under `strategy:` alone, as the flag --strategy '{tp: 2, pp: 4}' gives it, or "auto".
// `origin` names it in messages. micro_batches() checks it against the model.
Result<StrategyRequest> parse_strategy(std::string_view text, const std::string& origin);

// `path` itself when absolute, else relative to the folder of `job_file`.
std::string resolve_path(const std::string& job_file, const std::string& path);

}  // namespace regatta::workload
