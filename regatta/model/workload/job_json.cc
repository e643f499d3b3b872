#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "regatta/model/workload/internal/json_reader.h"
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

Result<Optimizer> optimizer_from_json(const json& object) {
  Optimizer optimizer;
  JsonReader reader(object, "optimizer");
  reader.read("lr", optimizer.lr);
  reader.read("beta1", optimizer.beta1);
  reader.read("beta2", optimizer.beta2);
  reader.read("eps", optimizer.eps);
  reader.read("weight_decay", optimizer.weight_decay);
  reader.read("clip_norm", optimizer.clip_norm);
  return finish(reader, optimizer);
}

Result<Checkpoint> checkpoint_from_json(const json& object) {
  Checkpoint checkpoint;
  JsonReader reader(object, "checkpoint");
  reader.read("folder", checkpoint.folder);
  reader.read("every", checkpoint.every);
  return finish(reader, checkpoint);
}

Result<std::vector<std::string>> placement_from_json(const json& list) {
  const Error wrong{Code::kInvalidInput, "placement: not a list of texts"};
  if (!list.is_array()) return wrong;
  std::vector<std::string> placement;
  for (const json& device : list) {
    if (!device.is_string()) return wrong;
    placement.push_back(device.get<std::string>());
  }
  return placement;
}

}  // namespace

json job_to_json(const Job& job) {
  return {{"name", job.name},
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
}

Result<Job> job_from_json(const json& object) {
  Job job;
  JsonReader reader(object, "job");
  reader.read("name", job.name);
  reader.take(job.model, model_from_json(reader.nested("model")));
  reader.read("data_text", job.data_text);
  reader.read("global_batch", job.global_batch);
  reader.read("precision", job.precision, kPrecisions);
  reader.take(job.optimizer, optimizer_from_json(reader.nested("optimizer")));
  reader.read("steps", job.steps);
  reader.read("seed", job.seed);
  reader.take(job.strategy, request_from_json(reader.nested("strategy")));
  reader.take(job.placement, placement_from_json(reader.nested("placement")));
  reader.take(job.checkpoint, checkpoint_from_json(reader.nested("checkpoint")));
  return finish(reader, job);
}

}  // namespace regatta::workload
