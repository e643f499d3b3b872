// The strategy and the request of workload/job.h.
#include <algorithm>
#include <cstddef>
#include <optional>
#include <type_traits>

#include <nlohmann/json.hpp>

#include "regatta/base/core/json.h"
#include "regatta/model/workload/job.h"

namespace regatta::workload {
namespace {

using nlohmann::json;

template <typename T>
void add(json& object, const char* key, const std::optional<T>& value) {
  if (!value) return;
  if constexpr (std::is_enum_v<T>)
    object[key] = to_string(*value);
  else
    object[key] = *value;
}

}  // namespace

json strategy_to_json(const Strategy& strategy) {
  json object = {{"tp", strategy.tp},
                 {"pp", strategy.pp},
                 {"dp", strategy.dp},
                 {"cp", strategy.cp},
                 {"ep", strategy.ep},
                 {"micro_batch", strategy.micro_batch},
                 {"schedule", to_string(strategy.schedule)},
                 {"virtual_stages", strategy.virtual_stages},
                 {"sequence_parallel", strategy.sequence_parallel},
                 {"zero", strategy.zero},
                 {"shard_ranks", strategy.shard_ranks},
                 {"context", to_string(strategy.context)},
                 {"offload", to_string(strategy.offload)},
                 {"recompute", to_string(strategy.recompute)},
                 {"overlap", strategy.overlap},
                 {"compression", to_string(strategy.compression)}};
  if (strategy.etp > 0) object["etp"] = strategy.etp;
  if (!strategy.stage_layers.empty()) object["stage_layers"] = strategy.stage_layers;
  return object;
}

Strategy read_strategy(const JsonReader& reader) {
  Strategy strategy;
  reader.read("tp", strategy.tp);
  reader.read("pp", strategy.pp);
  reader.read("dp", strategy.dp);
  reader.read_if("cp", strategy.cp);
  reader.read_if("ep", strategy.ep);
  reader.read_if("etp", strategy.etp, IntRange{.low = 1});
  reader.read("micro_batch", strategy.micro_batch);
  reader.read_if("schedule", strategy.schedule, kPipelineSchedules);
  reader.read_if("virtual_stages", strategy.virtual_stages);
  reader.read_if("sequence_parallel", strategy.sequence_parallel);
  reader.read_if("zero", strategy.zero, IntRange{0, 3});
  reader.read_if("shard_ranks", strategy.shard_ranks, IntRange{.low = 0});
  reader.read_if("context", strategy.context, kContextParallelisms);
  reader.read_if("offload", strategy.offload, kOffloads);
  reader.read("recompute", strategy.recompute, kRecomputes);
  reader.read("overlap", strategy.overlap);
  reader.read_if("compression", strategy.compression, kGradientCompressions);
  reader.read_if("stage_layers", strategy.stage_layers, IntRange{.low = 0});
  if (std::min({strategy.tp, strategy.pp, strategy.dp, strategy.cp, strategy.ep,
                strategy.micro_batch, strategy.virtual_stages}) < 1)
    reader.fail("every degree must be at least 1");
  const auto& layers = strategy.stage_layers;
  const std::size_t stages = as_index(strategy.pp);
  if (!layers.empty() && layers.size() != stages &&
      layers.size() != stages * as_index(parts_per_stage(strategy)))
    reader.at("stage_layers").fail("is not one number for each stage, or for each part");
  if (layers.size() == stages && std::find(layers.begin(), layers.end(), 0) != layers.end())
    reader.at("stage_layers").fail("is 0 for a stage; a stage needs a layer");
  return strategy;
}

json request_to_json(const StrategyRequest& request) {
  json object = json::object();
  add(object, "tp", request.tp);
  add(object, "pp", request.pp);
  add(object, "dp", request.dp);
  add(object, "cp", request.cp);
  add(object, "ep", request.ep);
  add(object, "etp", request.etp);
  add(object, "micro_batch", request.micro_batch);
  add(object, "schedule", request.schedule);
  add(object, "virtual_stages", request.virtual_stages);
  add(object, "sequence_parallel", request.sequence_parallel);
  add(object, "zero", request.zero);
  add(object, "shard_ranks", request.shard_ranks);
  add(object, "context", request.context);
  add(object, "offload", request.offload);
  add(object, "recompute", request.recompute);
  add(object, "overlap", request.overlap);
  add(object, "compression", request.compression);
  add(object, "stage_layers", request.stage_layers);
  for (const StrategyConstraint& one : request.constraints)
    object["constraints"].push_back(to_string(one));
  return object;
}

StrategyRequest read_request(const JsonReader& reader) {
  StrategyRequest request;
  reader.read_if("tp", request.tp);
  reader.read_if("pp", request.pp);
  reader.read_if("dp", request.dp);
  reader.read_if("cp", request.cp);
  reader.read_if("ep", request.ep);
  reader.read_if("etp", request.etp);
  reader.read_if("micro_batch", request.micro_batch);
  reader.read_if("schedule", request.schedule, kPipelineSchedules);
  reader.read_if("virtual_stages", request.virtual_stages);
  reader.read_if("sequence_parallel", request.sequence_parallel);
  reader.read_if("zero", request.zero);
  reader.read_if("shard_ranks", request.shard_ranks);
  reader.read_if("context", request.context, kContextParallelisms);
  reader.read_if("offload", request.offload, kOffloads);
  reader.read_if("recompute", request.recompute, kRecomputes);
  reader.read_if("overlap", request.overlap);
  reader.read_if("compression", request.compression, kGradientCompressions);
  reader.read_if("stage_layers", request.stage_layers, IntRange{.low = 0});
  if (request.stage_layers && request.stage_layers->empty()) request.stage_layers.reset();
  if (request.stage_layers && !request.pp)
    request.pp = static_cast<int>(request.stage_layers->size());
  if (!reader.has("constraints")) return request;
  for (const JsonReader& one : reader.at("constraints").items()) {
    auto constraint = parse_constraint(one.as<std::string>(), "constraint");
    if (constraint)
      request.constraints.push_back(*std::move(constraint));
    else
      one.fail(constraint.error().message);
  }
  return request;
}

}  // namespace regatta::workload
