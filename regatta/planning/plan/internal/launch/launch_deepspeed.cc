// DeepSpeed: a ds_config.json and the line that starts the user's program with it. Keys:
// deepspeed/runtime/zero/config.py and docs/_pages/config-json.md of DeepSpeed 0.16. The file says
// how replicas share and what they keep; the model itself, and how it is cut into tensors, stages,
// sequences or experts, is the program's, so a strategy with those is refused here (Megatron-LM's
// script has them) instead of left to an unknown program.
#include <string>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "regatta/planning/plan/internal/launch/launch_script.h"

namespace regatta::plan {
namespace {

using Json = nlohmann::ordered_json;
using workload::GradientCompression;
using workload::Offload;
using workload::Precision;
using workload::Recompute;
using workload::Strategy;

constexpr auto kSelf = Launcher::kDeepspeed;

bool offloads_optimizer(const Strategy& strategy) {
  return strategy.offload == Offload::kOptimizer || strategy.offload == Offload::kBoth;
}
bool offloads_activations(const Strategy& strategy) {
  return strategy.offload == Offload::kActivations || strategy.offload == Offload::kBoth;
}

Status check_degrees(const Strategy& strategy) {
  struct Degree {
    const char* name;
    int value;
  };
  for (const Degree& degree :
       {Degree{"tp", strategy.tp}, Degree{"pp", strategy.pp}, Degree{"cp", strategy.cp},
        Degree{"ep", strategy.ep}, Degree{"etp", strategy.expert_tp()}}) {
    if (degree.value == 1) continue;
    return unsupported_by(
        kSelf,
        fmt::format("{} {} is the program's, no configuration has it", degree.name, degree.value),
        fmt::format("set {} 1, or launch with megatron", degree.name));
  }
  return {};
}

Status check(const LaunchInput& input) {
  const Strategy& strategy = input.strategy;
  REGATTA_TRY_DO(check_degrees(strategy));
  if (is_eight_bits_or_less(input.precision))
    return unsupported_by(
        kSelf,
        fmt::format("{} is the program's, no configuration has it", to_string(input.precision)),
        "take bf16, or launch with megatron or torchrun");
  if (strategy.recompute != Recompute::kNone && strategy.recompute != Recompute::kFull)
    return unsupported_by(kSelf, "it recomputes whole blocks", "set recompute none or full");
  if (strategy.shard_ranks > 0 && strategy.zero != 3) {
    return unsupported_by(
        kSelf, fmt::format("only zero 3 shares among {} of the replicas", strategy.shard_ranks),
        "set zero 3, or leave shard_ranks out");
  }
  if (offloads_optimizer(strategy) && strategy.zero == 0)
    return unsupported_by(kSelf, "only a shared optimizer can wait in the server's memory",
                          "set zero 1, 2 or 3");
  if (offloads_activations(strategy) && strategy.recompute != Recompute::kFull)
    return unsupported_by(kSelf, "it offloads the activations that recomputation starts from alone",
                          "set recompute full, or offload none or optimizer");
  if (strategy.compression != GradientCompression::kNone &&
      strategy.compression != GradientCompression::kBf16 &&
      strategy.compression != GradientCompression::kFp16) {
    return unsupported_by(
        kSelf, "gradients travel in 16 or 32 bits, not as " + to_string(strategy.compression),
        "set compression none, bf16 or fp16");
  }
  return {};
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
                           {"warmup_num_steps", warmup_steps(input)},
                           {"cos_min_ratio", kFinalLearningRateFraction}}}};
  if (strategy.recompute == Recompute::kFull) {
    config["activation_checkpointing"] = {{"number_checkpoints", input.model.layers},
                                          {"partition_activations", false},
                                          {"cpu_checkpointing", offloads_activations(strategy)}};
  }
  return config;
}

std::vector<std::string> notes(const Strategy& strategy) {
  std::vector<std::string> lines = {
      "DeepSpeed 0.16 or later: run it on one server; HOSTFILE names all of them, SCRIPT the "
      "program,",
      "which makes its engine with deepspeed.initialize."};
  if (strategy.recompute == Recompute::kFull)
    lines.push_back("It must call deepspeed.checkpointing.checkpoint around each block.");
  if (strategy.shard_ranks > 0)
    lines.push_back("It must make its model in deepspeed.zero.MiCS_Init.");
  return lines;
}

}  // namespace

Result<std::string> deepspeed_script(const LaunchInput& input, int micro_batches) {
  REGATTA_TRY_DO(check(input));
  FlagArray flags("LAUNCH");
  flags.add_expanded("--hostfile", "\"${HOSTFILE:-hostfile}\"");
  flags.add("--num_nodes", input.servers);
  flags.add("--num_gpus", input.devices_per_server);
  std::string script = script_head(input, notes(input.strategy));
  script += "cat >ds_config.json <<'END'\n" + config_json(input, micro_batches).dump(2) + "\nEND\n";
  script += flags.text();
  return script + fmt::format(
                      "exec deepspeed {} \"${{SCRIPT:-train.py}}\" --deepspeed "
                      "--deepspeed_config ds_config.json \"$@\"\n",
                      flags.use());
}

}  // namespace regatta::plan
