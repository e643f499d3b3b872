#include "regatta/runtime/train/internal/train_spec_json.h"

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "regatta/base/core/json.h"
#include "regatta/model/workload/job.h"

namespace regatta::train {
namespace {

Status check_place(const TrainSpec& spec) {
  if (spec.world_size != spec.strategy.world_size()) {
    return Error{Code::kInvalidInput, fmt::format("worker: the strategy {} needs {} ranks, not {}",
                                                  workload::to_string(spec.strategy),
                                                  spec.strategy.world_size(), spec.world_size)};
  }
  if (spec.rank.value < 0 || spec.rank.value >= spec.world_size) {
    return Error{Code::kInvalidInput, fmt::format("worker: there is no rank {} in a world of {}",
                                                  spec.rank.value, spec.world_size)};
  }
  return {};
}

// The keys that agent::Session adds: this rank and its place.
void read_place(const JsonReader& reader, TrainSpec& spec) {
  reader.read("rank", spec.rank);
  reader.read("world_size", spec.world_size, IntRange{});
  reader.read_if("rank_names", spec.rank_names);
  reader.read_if("server", spec.server);
  reader.read_if("address", spec.address);
  reader.read_if("link_rate_Bps", spec.link_rate);
  reader.read_if("device_index", spec.device_index);
  reader.read_if("cpu_share", spec.cpu_share);
  reader.read_if("compute_cgroup", spec.compute_cgroup);
  reader.read_if("job_token", spec.job_token);
}

}  // namespace

nlohmann::json spec_to_json(const TrainSpec& spec) {
  return {{"job", workload::job_to_json(spec.job)},
          {"strategy", workload::strategy_to_json(spec.strategy)},
          {"resume", spec.resume},
          {"trace_from_step", spec.trace_from_step},
          {"trace_to_step", spec.trace_to_step},
          {"flight_dir", spec.flight_dir}};
}

Result<TrainSpec> spec_from_json(const nlohmann::json& json) {
  const JsonReader reader(json, "worker: spec");
  TrainSpec spec;
  spec.job = workload::read_job(reader.at("job"));
  spec.strategy = workload::read_strategy(reader.at("strategy"));
  reader.read_if("resume", spec.resume);
  reader.read_if("trace_from_step", spec.trace_from_step);
  reader.read_if("trace_to_step", spec.trace_to_step);
  reader.read_if("flight_dir", spec.flight_dir);
  read_place(reader, spec);
  REGATTA_TRY_DO(reader.status());
  REGATTA_TRY_DO(check_place(spec));
  return spec;
}

}  // namespace regatta::train
