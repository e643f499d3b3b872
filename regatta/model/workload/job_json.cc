#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "regatta/base/core/json.h"
#include "regatta/model/workload/internal/tuning.h"
#include "regatta/model/workload/job.h"

namespace regatta::workload {
namespace {

using nlohmann::json;

json optimizer_to_json(const Optimizer& optimizer) {
  return {{"lr", optimizer.lr},
          {"beta1", optimizer.beta1},
          {"beta2", optimizer.beta2},
          {"eps", optimizer.eps},
          {"weight_decay", optimizer.weight_decay},
          {"clip_norm", optimizer.clip_norm}};
}

Optimizer read_optimizer(const JsonReader& reader) {
  Optimizer optimizer;
  reader.read("lr", optimizer.lr);
  reader.read("beta1", optimizer.beta1);
  reader.read("beta2", optimizer.beta2);
  reader.read("eps", optimizer.eps);
  reader.read("weight_decay", optimizer.weight_decay);
  reader.read("clip_norm", optimizer.clip_norm);
  return optimizer;
}

Checkpoint read_checkpoint(const JsonReader& reader) {
  Checkpoint checkpoint;
  reader.read("folder", checkpoint.folder);
  reader.read("every", checkpoint.every);
  return checkpoint;
}

}  // namespace

json job_to_json(const Job& job) {
  json object = {
      {"name", job.name},
      {"model", model_to_json(job.model)},
      {"data_text", job.data_text},
      {"global_batch", job.global_batch},
      {"precision", to_string(job.precision)},
      {"optimizer", optimizer_to_json(job.optimizer)},
      {"steps", job.steps},
      {"seed", job.seed},
      {"strategy", request_to_json(job.strategy)},
      {"placement", job.placement},
      {"checkpoint", {{"folder", job.checkpoint.folder}, {"every", job.checkpoint.every}}}};
  if (is_frozen(job.model)) object["tuning"] = tuning_to_json(job.model.adapters);
  return object;
}

Job read_job(const JsonReader& reader) {
  Job job;
  reader.read("name", job.name);
  job.model = read_model(reader.at("model"));
  if (reader.has("tuning")) job.model.adapters = read_tuning(reader.at("tuning"));
  reader.read("data_text", job.data_text);
  reader.read("global_batch", job.global_batch);
  reader.read("precision", job.precision, kPrecisions);
  job.optimizer = read_optimizer(reader.at("optimizer"));
  reader.read("steps", job.steps);
  reader.read("seed", job.seed);
  job.strategy = read_request(reader.at("strategy"));
  reader.read("placement", job.placement);
  job.checkpoint = read_checkpoint(reader.at("checkpoint"));
  return job;
}

}  // namespace regatta::workload
