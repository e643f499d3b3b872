// torchtitan, PyTorch's FSDP with the other degrees. Options: torchtitan/config/job_config.py;
// which degrees go together: torchtitan/distributed/parallel_dims.py, both of torchtitan 0.2.
#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "regatta/model/pipeline/pipeline_order.h"
#include "regatta/planning/plan/internal/launch/launch_script.h"
#include "regatta/planning/plan/internal/launch/launch_torchtitan_model.h"

namespace regatta::plan {
namespace {

using workload::Offload;
using workload::PipelineSchedule;
using workload::Precision;
using workload::Recompute;
using workload::Strategy;

constexpr auto kTorchtitan = Launcher::kTorchrun;

// Ranks that hold a copy of the weights together, those of one sequence among them.
int shard_ranks(const Strategy& strategy) {
  if (strategy.zero == 0) return strategy.cp;
  return strategy.shard_ranks > 0 ? strategy.shard_ranks : strategy.dp * strategy.cp;
}

std::string schedule_name(PipelineSchedule schedule) {
  if (schedule == PipelineSchedule::kInterleaved) return "Interleaved1F1B";
  return schedule == PipelineSchedule::kZbV ? "ZBVZeroBubble" : "1F1B";
}

Status check_pipeline(const LaunchInput& input, int micro_batches) {
  const Strategy& strategy = input.strategy;
  if (strategy.pp == 1) return {};
  if (strategy.schedule == PipelineSchedule::kZbH1 ||
      strategy.schedule == PipelineSchedule::kDualPipe) {
    return unsupported_by(kTorchtitan, "it has no schedule " + to_string(strategy.schedule),
                          "set schedule 1f1b, interleaved or zb-v");
  }
  // torch.distributed.pipelining: rounds of about pp micro-batches, all alike.
  const int rounds = std::max(1, micro_batches / strategy.pp);
  if (strategy.schedule == PipelineSchedule::kInterleaved && micro_batches % rounds != 0) {
    return unsupported_by(
        kTorchtitan,
        fmt::format("{} micro-batches do not make {} equal rounds", micro_batches, rounds),
        "choose another micro_batch, or schedule 1f1b");
  }
  const std::vector<int> layers = layers_of_parts(input.model, strategy);
  if (are_equal(layers)) return {};
  if (parts_per_stage(strategy) > 1) {
    return unsupported_by(
        kTorchtitan,
        fmt::format("{} layers do not divide into {} equal parts", input.model.layers,
                    layers.size()),
        "choose a pp and virtual_stages that divide them, or launch with megatron");
  }
  const int most = *std::max_element(layers.begin(), layers.end());
  if (std::any_of(layers.begin() + 1, layers.end() - 1, [&](int count) { return count < most; })) {
    return unsupported_by(kTorchtitan, "only its first and its last stage can hold fewer layers",
                          "choose another pp or stage_layers, or launch with megatron");
  }
  return {};
}

// Experts take the ranks of a sequence first, whole ones the tensor ranks, too, then those that share
// weights.
Status check_torchtitan_experts(const Strategy& strategy) {
  const int etp = strategy.expert_tp();
  const bool is_split = etp == strategy.tp;
  if (!is_split && (etp > 1 || strategy.ep == 1)) {
    return unsupported_by(
        kTorchtitan,
        fmt::format("it splits experts as the rest of the block, or with ep not at all, and has no "
                    "etp {} beside tp {} and ep {}",
                    etp, strategy.tp, strategy.ep),
        strategy.ep == 1 ? "leave etp out" : "set etp 1, or leave it out");
  }
  const int least = strategy.cp * (is_split ? 1 : strategy.tp);
  const int most = shard_ranks(strategy) * (is_split ? 1 : strategy.tp);
  if (strategy.ep == 1 || (strategy.ep % least == 0 && most % strategy.ep == 0)) return {};
  return unsupported_by(
      kTorchtitan,
      fmt::format("ep {} must be a multiple of {} {} and divide the {} ranks that share weights",
                  strategy.ep, is_split ? "cp" : "tp x cp", least, most),
      "choose another ep, or another zero");
}

Status check_torchtitan_sharing(const Strategy& strategy) {
  const int copies = strategy.dp * strategy.cp;
  if (strategy.zero == 1)
    return unsupported_by(kTorchtitan, "FSDP shares gradients with the optimizer",
                          "set zero 2 or 3");
  if (strategy.zero == 0 && copies > 1 && copies != strategy.world_size())
    return unsupported_by(kTorchtitan, "whole replicas go with no other degree", "set zero 2 or 3");
  if (strategy.zero == 0 && strategy.cp > 1)
    return unsupported_by(kTorchtitan, "the ranks of a sequence share their weights",
                          "set zero 2 or 3");
  if (shard_ranks(strategy) % strategy.cp != 0) {
    return unsupported_by(
        kTorchtitan,
        fmt::format("shard_ranks {} is no multiple of cp {}", strategy.shard_ranks, strategy.cp),
        "choose a multiple");
  }
  REGATTA_TRY_DO(check_torchtitan_experts(strategy));
  if (strategy.offload != Offload::kNone)
    return unsupported_by(kTorchtitan, "it offloads weights with the optimizer, and no activations",
                          "set offload none, or launch with deepspeed");
  if (strategy.compression != workload::GradientCompression::kNone)
    return unsupported_by(kTorchtitan, "gradients are summed in fp32", "set compression none");
  return {};
}

Status check_torchtitan(const LaunchInput& input, int micro_batches) {
  const Strategy& strategy = input.strategy;
  if (input.precision == Precision::kFp16)
    return unsupported_by(kTorchtitan, "it has no fp16",
                          "take bf16, or launch with megatron or deepspeed");
  if (input.precision == Precision::kNvfp4)
    return unsupported_by(kTorchtitan, "it has no nvfp4",
                          "take mxfp8 or bf16, or launch with megatron");
  REGATTA_TRY_DO(check_torchtitan_model(input.model));
  if (needs_experts(strategy.recompute))
    return unsupported_by(kTorchtitan, "it recomputes no such part of a block",
                          "set recompute none, selective or full");
  if (strategy.tp > 1 && !strategy.sequence_parallel)
    return unsupported_by(kTorchtitan, "tensor ranks always share the tokens",
                          "set sequence_parallel");
  if (attention_shape(input.model).kv_heads % strategy.tp != 0) {
    return unsupported_by(kTorchtitan,
                          fmt::format("tp {} does not divide the {} heads of keys and values",
                                      strategy.tp, attention_shape(input.model).kv_heads),
                          "choose a divisor of them");
  }
  if (strategy.cp > 1 && strategy.context == workload::ContextParallelism::kAllToAll)
    return unsupported_by(kTorchtitan, "it shares a sequence as a ring alone", "set context ring");
  REGATTA_TRY_DO(check_pipeline(input, micro_batches));
  return check_torchtitan_sharing(strategy);
}

FlagArray degree_flags(const LaunchInput& input) {
  const Strategy& strategy = input.strategy;
  const int shards = shard_ranks(strategy) / strategy.cp;
  FlagArray flags("PARALLEL");
  flags.add("--parallelism.data_parallel_replicate_degree", strategy.dp / shards);
  flags.add("--parallelism.data_parallel_shard_degree", shards);
  if (strategy.zero >= 2) {
    flags.add("--parallelism.fsdp_reshard_after_forward", strategy.zero == 3 ? "always" : "never");
  }
  flags.add("--parallelism.tensor_parallel_degree", strategy.tp);
  flags.add("--parallelism.context_parallel_degree", strategy.cp);
  if (strategy.cp > 1) flags.add("--parallelism.context_parallel_rotate_method", "alltoall");
  if (has_experts(input.model)) {
    flags.add("--parallelism.expert_parallel_degree", strategy.ep);
    flags.add("--parallelism.expert_tensor_parallel_degree",
              strategy.ep > 1 ? strategy.expert_tp() : 1);
  }
  flags.add("--parallelism.pipeline_parallel_degree", strategy.pp);
  if (strategy.pp == 1) return flags;
  flags.add("--parallelism.pipeline_parallel_schedule", schedule_name(strategy.schedule));
  flags.add("--parallelism.pipeline_parallel_microbatch_size", strategy.micro_batch);
  const std::vector<int> layers = layers_of_parts(input.model, strategy);
  const int most = *std::max_element(layers.begin(), layers.end());
  flags.add("--parallelism.pipeline_parallel_layers_per_stage", most);
  flags.add("--parallelism.pipeline_parallel_first_stage_less_layers", most - layers.front());
  flags.add("--parallelism.pipeline_parallel_last_stage_less_layers", most - layers.back());
  return flags;
}

void add_precision(FlagArray& flags, const LaunchInput& input) {
  const bool is_whole = input.precision == Precision::kFp32;
  flags.add("--training.mixed_precision_param", is_whole ? "float32" : "bfloat16");
  if (input.precision == Precision::kMxfp8) {
    flags.add("--model.converters", "quantize.linear.mx");
    flags.add("--quantize.linear.mx.recipe_name", "mxfp8_cublas");
  }
  if (input.precision != Precision::kFp8) return;
  flags.add("--model.converters", "quantize.linear.float8");
  // Scales of whole tensors are not ready for experts.
  if (has_experts(input.model)) {
    flags.add("--quantize.linear.float8.recipe_name", "rowwise");
  } else {
    flags.add("--quantize.linear.float8.enable_fsdp_float8_all_gather");
    flags.add("--quantize.linear.float8.precompute_float8_dynamic_scale_for_fsdp");
  }
}

FlagArray training_flags(const LaunchInput& input, int micro_batches) {
  const Strategy& strategy = input.strategy;
  const workload::Optimizer& adam = input.optimizer;
  // A pipeline cuts a rank's whole batch into its micro-batches; without one they are summed.
  const int local = strategy.micro_batch * (strategy.pp > 1 ? micro_batches : 1);
  FlagArray flags("TRAINING");
  flags.add("--training.local_batch_size", local);
  flags.add("--training.global_batch_size", input.global_batch);
  flags.add("--training.seq_len", input.model.seq);
  add_precision(flags, input);
  flags.add("--activation_checkpoint.mode", to_string(strategy.recompute));
  if (strategy.recompute == Recompute::kSelective)
    flags.add("--activation_checkpoint.selective_ac_option", "op");
  flags.add("--compile.enable");
  flags.add("--training.steps", input.steps);
  // Its bound of 0 makes all gradients 0.
  const double bound =
      adam.clip_norm > 0 ? adam.clip_norm : std::numeric_limits<double>::infinity();
  flags.add("--training.max_norm", bound);
  flags.add("--optimizer.name", "AdamW");
  flags.add("--optimizer.lr", adam.lr);
  flags.add("--optimizer.beta1", adam.beta1);
  flags.add("--optimizer.beta2", adam.beta2);
  flags.add("--optimizer.eps", adam.eps);
  flags.add("--optimizer.weight_decay", adam.weight_decay);
  flags.add("--lr_scheduler.warmup_steps", warmup_steps(input));
  flags.add("--lr_scheduler.decay_type", "cosine");
  flags.add("--lr_scheduler.min_lr_factor", kFinalLearningRateFraction);
  flags.add("--job.description", input.job_name);
  return flags;
}

std::vector<std::string> notes(const LaunchInput& input, const TorchtitanModel& model) {
  std::vector<std::string> lines = {
      "torchtitan 0.2: run it in its folder on every server, MASTER_ADDR the first server,",
      "NODE_RANK this server's number. CONFIG_FILE is a configuration to begin with, for data and "
      "tokenizer."};
  if (!model.definition.empty())
    lines.push_back(fmt::format("Flavor {} of {} is not torchtitan's: add it to its models as {}",
                                model.flavor, model.name, model.definition));
  if (input.strategy.recompute == Recompute::kSelective)
    lines.push_back("torchtitan's selective mode recomputes more than attention: slower, smaller.");
  return lines;
}

}  // namespace

Result<std::string> torchtitan_script(const LaunchInput& input, int micro_batches) {
  REGATTA_TRY_DO(check_torchtitan(input, micro_batches));
  const TorchtitanModel model = torchtitan_model(input.model);
  FlagArray model_flags("MODEL");
  model_flags.add("--model.name", model.name);
  model_flags.add("--model.flavor", model.flavor);
  const std::vector<FlagArray> parts = {torchrun_flags(input), model_flags, degree_flags(input),
                                        training_flags(input, micro_batches)};
  std::string script = script_head(input, notes(input, model));
  for (const FlagArray& part : parts)
    script += part.text();
  script += fmt::format("exec torchrun {} -m torchtitan.train", parts.front().use());
  script += " ${CONFIG_FILE:+--job.config_file \"$CONFIG_FILE\"}";
  for (std::size_t i = 1; i < parts.size(); ++i)
    script += " \\\n  " + parts[i].use();
  return script + " \"$@\"\n";
}

}  // namespace regatta::plan
