#include "regatta/runtime/train/internal/train_spec_json.h"

#include <string_view>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "regatta/model/workload/job.h"

namespace regatta::train {
namespace {

// Fills `into` where the key is present; required keys are asked for with `required`.
template <typename T>
Status read(const nlohmann::json& json, std::string_view key, T& into, bool required = false) {
  const auto found = json.find(key);
  if (found == json.end()) {
    if (!required) return {};
    return Error{Code::kInvalidInput, fmt::format("worker: the spec has no \"{}\"", key)};
  }
  try {
    into = found->get<T>();
  } catch (const nlohmann::json::exception&) {
    return Error{
        Code::kInvalidInput,
        fmt::format("worker: \"{}\" of the spec is of another type: {}", key, found->dump())};
  }
  return {};
}

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

// What agent::Session adds: who this rank is and where it runs.
Status read_place(const nlohmann::json& json, TrainSpec& spec) {
  REGATTA_TRY_DO(read(json, "rank", spec.rank.value, true));
  REGATTA_TRY_DO(read(json, "world_size", spec.world_size, true));
  REGATTA_TRY_DO(read(json, "rank_names", spec.rank_names));
  REGATTA_TRY_DO(read(json, "server", spec.server));
  REGATTA_TRY_DO(read(json, "address", spec.address));
  REGATTA_TRY_DO(read(json, "link_rate_Bps", spec.link_rate.value));
  REGATTA_TRY_DO(read(json, "device_index", spec.device_index));
  REGATTA_TRY_DO(read(json, "cpu_share", spec.cpu_share));
  REGATTA_TRY_DO(read(json, "compute_cgroup", spec.compute_cgroup));
  REGATTA_TRY_DO(read(json, "job_token", spec.job_token));
  return check_place(spec);
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
  if (!json.is_object()) return Error{Code::kInvalidInput, "worker: the spec is no JSON object"};
  TrainSpec spec;
  nlohmann::json part;
  REGATTA_TRY_DO(read(json, "job", part, true));
  REGATTA_TRY(job, workload::job_from_json(part));
  REGATTA_TRY_DO(read(json, "strategy", part, true));
  REGATTA_TRY(strategy, workload::strategy_from_json(part));
  spec.job = std::move(job);
  spec.strategy = strategy;
  REGATTA_TRY_DO(read(json, "resume", spec.resume));
  REGATTA_TRY_DO(read(json, "trace_from_step", spec.trace_from_step));
  REGATTA_TRY_DO(read(json, "trace_to_step", spec.trace_to_step));
  REGATTA_TRY_DO(read(json, "flight_dir", spec.flight_dir));
  REGATTA_TRY_DO(read_place(json, spec));
  return spec;
}

}  // namespace regatta::train
