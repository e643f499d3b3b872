// DeepSpeed: a ds_config.json and the line that starts the user's program with it. Keys:
// deepspeed/runtime/constants.py, runtime/zero/config.py and runtime/tensor_parallel/config.py. The
// file says how replicas share and what they keep, and how AutoTP cuts tensors; the model itself,
// and how it is cut into stages, sequences or experts, is the program's
// (launch_rules_deepspeed.cc).
#include <algorithm>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "regatta/planning/plan/internal/launch/launch_script.h"
#include "regatta/planning/plan/internal/launch/launch_servers.h"

namespace regatta::plan {
namespace {

using Json = nlohmann::ordered_json;
using workload::GradientCompression;
using workload::Offload;
using workload::Precision;
using workload::Recompute;
using workload::Strategy;

constexpr int kRunsAutoTp = 17;  // the minor release whose configuration file has it

bool offloads_optimizer(const Strategy& strategy) {
  return strategy.offload == Offload::kOptimizer || strategy.offload == Offload::kBoth;
}
bool offloads_activations(const Strategy& strategy) {
  return strategy.offload == Offload::kActivations || strategy.offload == Offload::kBoth;
}

Json zero_json(const Strategy& strategy) {
  Json zero = {{"stage", strategy.zero}};
  if (strategy.zero == 0) return zero;
  zero["overlap_comm"] = strategy.overlap;
  zero["contiguous_gradients"] = true;
  zero["reduce_scatter"] = true;
  if (offloads_optimizer(strategy))
    zero["offload_optimizer"] = {{"device", "cpu"}, {"pin_memory", true}};
  // Weights, gradients and optimizer inside a group and copies between groups is MiCS; the
  // partition of hpZ (ZeRO++) is of the weights alone.
  if (strategy.shard_ranks > 0) {
    zero["mics_shard_size"] = strategy.shard_ranks;
    zero["mics_hierarchical_params_gather"] = false;
  }
  return zero;
}

Json config_json(const LaunchInput& input, int micro_batches) {
  const Strategy& strategy = input.strategy;
  const workload::Optimizer& adam = input.optimizer;
  Json config = {{"train_batch_size", input.global_batch},
                 {"train_micro_batch_size_per_gpu", strategy.micro_batch},
                 {"gradient_accumulation_steps", micro_batches},
                 {"gradient_clipping", adam.clip_norm},
                 {"zero_optimization", zero_json(strategy)}};
  if (input.precision == Precision::kBf16) config["bf16"] = {{"enabled", true}};
  if (input.precision == Precision::kFp16) config["fp16"] = {{"enabled", true}};
  if (strategy.compression != GradientCompression::kNone)
    config["communication_data_type"] = to_string(strategy.compression);
  config["optimizer"] = {{"type", "AdamW"},
                         {"params",
                          {{"lr", adam.lr},
                           {"betas", {adam.beta1, adam.beta2}},
                           {"eps", adam.eps},
                           {"weight_decay", adam.weight_decay}}}};
  config["scheduler"] = {{"type", "WarmupCosineLR"},
                         {"params",
                          {{"total_num_steps", input.steps},
                           {"warmup_num_steps", std::max(1, warmup_steps(input))},
                           {"warmup_type", "linear"},
                           {"cos_min_ratio", kFinalLearningRateFraction}}}};
  if (strategy.tp > 1) config["tensor_parallel"] = {{"autotp_size", strategy.tp}};
  if (strategy.recompute == Recompute::kFull) {
    config["activation_checkpointing"] = {{"number_checkpoints", input.model.layers},
                                          {"partition_activations", false},
                                          {"cpu_checkpointing", offloads_activations(strategy)}};
  }
  return config;
}

std::vector<std::string> deepspeed_notes(const LaunchInput& input) {
  const Strategy& strategy = input.strategy;
  std::vector<std::string> lines = {
      fmt::format("DeepSpeed 0.{} or later: run it on the first server, which reaches the others "
                  "by ssh; LAUNCHER=slurm inside an allocation.",
                  strategy.tp > 1 ? kRunsAutoTp : 16),
      "HOSTFILE names other servers, SCRIPT the program, which makes its engine with "
      "deepspeed.initialize,",
      fmt::format("samples of {} tokens, and what it saves, loads and evaluates: no configuration "
                  "has them.",
                  input.model.seq)};
  if (strategy.tp > 1) {
    lines.push_back(
        "AutoTP cuts models of Hugging Face; for others the program gives tensor_parallel a "
        "partition_config.");
  }
  if (strategy.recompute == Recompute::kFull)
    lines.emplace_back("It must call deepspeed.checkpointing.checkpoint around each block.");
  if (is_frozen(input.model)) {
    lines.push_back(
        fmt::format("It must train adapters of rank {} alone, the other weights frozen: "
                    "the plan counts no gradients and no optimizer for them.",
                    input.model.adapters.rank));
  }
  if (input.model.packed > 0) {
    lines.push_back(
        fmt::format("It must pack samples of {} tokens on average, none of which sees "
                    "another.",
                    input.model.packed));
  }
  if (strategy.shard_ranks > 0)
    lines.emplace_back("It must make its model in deepspeed.zero.MiCS_Init.");
  if (has_experts(input.model) && strategy.zero == 3)
    lines.emplace_back(
        "It must name its blocks of experts with deepspeed.utils.set_z3_leaf_modules.");
  return lines;
}

}  // namespace

std::string deepspeed_script(const LaunchInput& input, int micro_batches) {
  FlagArray flags("LAUNCH");
  flags.add_expanded("--hostfile", "\"${HOSTFILE:-hostfile}\"");
  flags.add("--num_nodes", input.servers);
  flags.add("--num_gpus", input.devices_per_server);
  flags.add_expanded("--launcher", "\"${LAUNCHER:-pdsh}\"");
  flags.add_expanded("--master_port", "\"${MASTER_PORT:-29500}\"");
  std::string script =
      "#!/bin/bash\n" + script_head(input, deepspeed_notes(input)) + "set -euo pipefail\n";
  script += hostfile_lines(input) + nic_lines(input);
  script += "cat >ds_config.json <<'END'\n" + config_json(input, micro_batches).dump(2) + "\nEND\n";
  script += flags.text();
  return script + fmt::format(
                      "exec deepspeed {} \"${{SCRIPT:-train.py}}\" --deepspeed "
                      "--deepspeed_config ds_config.json \"$@\"\n",
                      flags.use());
}

}  // namespace regatta::plan
