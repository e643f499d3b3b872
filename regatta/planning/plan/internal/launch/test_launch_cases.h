// plan/internal/launch/test_launch_cases.h: for tests: plans that launchers are asked for.
#pragma once

#include <cstddef>
#include <random>
#include <string>
#include <vector>

#include "regatta/base/core/result.h"
#include "regatta/model/workload/model.h"
#include "regatta/model/workload/strategy.h"
#include "regatta/planning/plan/launch.h"

namespace regatta::plan {

inline workload::ModelShape preset(const std::string& name) {
  return workload::find_model_preset(name)->model;
}

// Owns what a LaunchInput refers to.
struct LaunchCase {
  workload::ModelShape model;
  workload::Strategy strategy;
  int global_batch = 0;
  int servers = 1;
  workload::Precision precision = workload::Precision::kBf16;
  LaunchServers placed = {};

  Result<std::string> script(Launcher launcher) const {
    return launch_arguments(launcher, {.model = model,
                                       .strategy = strategy,
                                       .precision = precision,
                                       .global_batch = global_batch,
                                       .servers = servers,
                                       .devices_per_server = strategy.world_size() / servers,
                                       .job_name = "a job",
                                       .optimizer = {},
                                       .placed = placed});
  }
};

inline workload::ModelShape random_launch_model(std::mt19937& random) {
  const std::vector<std::string> models = {
      "gpt3-6.7b",   "llama2-7b",     "llama3-70b",       "qwen2-7b",        "mixtral-8x7b",
      "deepseek-v3", "qwen3-30b-a3b", "deepseek-v2-lite", "qwen3-235b-a22b", "kimi-k2"};
  return preset(models[std::uniform_int_distribution<std::size_t>(0, models.size() - 1)(random)]);
}

// With windows, state spaces, modules that predict, adapters or packed samples.
inline workload::ModelShape random_special_model(std::mt19937& random) {
  const std::vector<std::string> models = {
      "gpt-oss-20b", "gpt-oss-120b", "nemotron3-nano", "nemotron3-super",  "llama4-maverick",
      "llama3-70b",  "deepseek-v3",  "qwen3-30b-a3b",  "deepseek-v2-lite", "kimi-k2"};
  const auto below = [&](int count) {
    return std::uniform_int_distribution<int>(0, count - 1)(random);
  };
  workload::ModelShape model =
      preset(models[static_cast<std::size_t>(below(static_cast<int>(models.size())))]);
  if (below(2) == 0) model.mtp_layers = 1 + below(2);
  if (below(3) == 0) model.packed = 200;
  if (below(3) == 0) model.adapters = {.rank = 16, .qkv = true, .proj = below(2) == 0};
  return model;
}

inline LaunchCase random_launch_case(std::mt19937& random, const workload::ModelShape& model) {
  const auto pick = [&](const auto& values) {
    return values[std::uniform_int_distribution<std::size_t>(0, values.size() - 1)(random)];
  };
  LaunchCase one{.model = model, .strategy = {}};
  workload::Strategy& strategy = one.strategy;
  const std::vector<int> powers = {1, 1, 2, 4, 8};
  strategy.tp = pick(powers);
  strategy.pp = pick(powers);
  strategy.dp = pick(powers);
  strategy.cp = pick(std::vector<int>{1, 1, 2});
  strategy.ep = has_experts(one.model) ? pick(powers) : 1;
  if (has_experts(one.model) && pick(std::vector<int>{0, 1}) == 1) strategy.etp = 1;
  strategy.micro_batch = pick(std::vector<int>{1, 2});
  strategy.recompute = pick(workload::kRecomputes);
  strategy.schedule = pick(std::vector<workload::PipelineSchedule>{
      workload::PipelineSchedule::k1F1B, workload::PipelineSchedule::k1F1B,
      workload::PipelineSchedule::kInterleaved, workload::PipelineSchedule::kZbV});
  if (strategy.schedule == workload::PipelineSchedule::kInterleaved) strategy.virtual_stages = 2;
  strategy.sequence_parallel = strategy.tp > 1 && pick(std::vector<int>{0, 1, 1, 1}) == 1;
  strategy.context = pick(workload::kContextParallelisms);
  strategy.overlap = pick(std::vector<int>{0, 1}) == 1;
  strategy.zero = pick(std::vector<int>{0, 1, 1, 2, 3, 3});
  one.precision = pick(std::vector<workload::Precision>{
      workload::Precision::kBf16, workload::Precision::kBf16, workload::Precision::kFp8,
      workload::Precision::kFp16, workload::Precision::kMxfp8, workload::Precision::kNvfp4});
  if (pick(std::vector<int>{0, 0, 1}) == 1) one.model.seq *= 4;
  one.global_batch = strategy.dp * strategy.micro_batch * pick(std::vector<int>{8, 12, 16});
  return one;
}

inline LaunchCase random_launch_case(std::mt19937& random) {
  const workload::ModelShape model = random_launch_model(random);
  return random_launch_case(random, model);
}

}  // namespace regatta::plan
