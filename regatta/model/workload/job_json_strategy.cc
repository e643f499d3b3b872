// The strategy and the request of workload/job.h.
#include <algorithm>
#include <cstddef>
#include <optional>
#include <type_traits>

#include <nlohmann/json.hpp>

#include "regatta/model/workload/internal/json_reader.h"
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
  if (!strategy.stage_layers.empty()) object["stage_layers"] = strategy.stage_layers;
  return object;
}

Result<Strategy> strategy_from_json(const json& object) {
  Strategy strategy;
  JsonReader reader(object, "strategy");
  reader.read("tp", strategy.tp);
  reader.read("pp", strategy.pp);
  reader.read("dp", strategy.dp);
  reader.read_if("cp", strategy.cp);
  reader.read_if("ep", strategy.ep);
  reader.read("micro_batch", strategy.micro_batch);
  reader.read_if("schedule", strategy.schedule, kPipelineSchedules);
  reader.read_if("virtual_stages", strategy.virtual_stages);
  reader.read_if("sequence_parallel", strategy.sequence_parallel);
  reader.read_if("zero", strategy.zero);
  reader.read_if("shard_ranks", strategy.shard_ranks);
  reader.read_if("context", strategy.context, kContextParallelisms);
  reader.read_if("offload", strategy.offload, kOffloads);
  reader.read("recompute", strategy.recompute, kRecomputes);
  reader.read("overlap", strategy.overlap);
  reader.read_if("compression", strategy.compression, kGradientCompressions);
  reader.read_if("stage_layers", strategy.stage_layers);
  if (std::min({strategy.tp, strategy.pp, strategy.dp, strategy.cp, strategy.ep,
                strategy.micro_batch, strategy.virtual_stages}) < 1)
    reader.fail("every degree must be at least 1");
  if (strategy.zero < 0 || strategy.zero > 3) reader.fail("\"zero\" is not from 0 to 3");
  if (strategy.shard_ranks < 0) reader.fail("\"shard_ranks\" must be at least 0");
  const auto& layers = strategy.stage_layers;
  if (!layers.empty() && (layers.size() != static_cast<std::size_t>(strategy.pp) ||
                          *std::min_element(layers.begin(), layers.end()) < 1))
    reader.fail("\"stage_layers\" is not one number, at least 1, a stage");
  return finish(reader, strategy);
}

json request_to_json(const StrategyRequest& request) {
  json object = json::object();
  add(object, "tp", request.tp);
  add(object, "pp", request.pp);
  add(object, "dp", request.dp);
  add(object, "cp", request.cp);
  add(object, "ep", request.ep);
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
  return object;
}

Result<StrategyRequest> request_from_json(const json& object) {
  StrategyRequest request;
  JsonReader reader(object, "strategy");
  reader.read("tp", request.tp);
  reader.read("pp", request.pp);
  reader.read("dp", request.dp);
  reader.read("cp", request.cp);
  reader.read("ep", request.ep);
  reader.read("micro_batch", request.micro_batch);
  reader.read("schedule", request.schedule, kPipelineSchedules);
  reader.read("virtual_stages", request.virtual_stages);
  reader.read("sequence_parallel", request.sequence_parallel);
  reader.read("zero", request.zero);
  reader.read("shard_ranks", request.shard_ranks);
  reader.read("context", request.context, kContextParallelisms);
  reader.read("offload", request.offload, kOffloads);
  reader.read("recompute", request.recompute, kRecomputes);
  reader.read("overlap", request.overlap);
  reader.read("compression", request.compression, kGradientCompressions);
  reader.read("stage_layers", request.stage_layers);
  if (request.stage_layers && request.stage_layers->empty()) request.stage_layers.reset();
  if (request.stage_layers && !request.pp)
    request.pp = static_cast<int>(request.stage_layers->size());
  return finish(reader, request);
}

}  // namespace regatta::workload
