// torchtitan, PyTorch's FSDP with the other degrees. Options: torchtitan/config/job_config.py;
// which degrees go together: torchtitan/distributed/parallel_dims.py, both of torchtitan 0.2.
#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "regatta/planning/plan/internal/launch/launch_script.h"
#include "regatta/planning/plan/internal/launch/launch_servers.h"
#include "regatta/planning/plan/internal/launch/launch_torchtitan_model.h"
#include "regatta/planning/plan/internal/launch/model_details.h"

namespace regatta::plan {
namespace {

using workload::Offload;
using workload::PipelineSchedule;
using workload::Precision;
using workload::Recompute;
using workload::Strategy;

std::string schedule_name(PipelineSchedule schedule) {
  if (schedule == PipelineSchedule::kInterleaved) return "Interleaved1F1B";
  return schedule == PipelineSchedule::kZbV ? "ZBVZeroBubble" : "1F1B";
}

FlagArray mesh_flags(const LaunchInput& input) {
  const Strategy& strategy = input.strategy;
  const int shards = sharing_ranks(strategy) / strategy.cp;
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

void add_torchtitan_precision(FlagArray& flags, const LaunchInput& input) {
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

FlagArray step_flags(const LaunchInput& input, int micro_batches) {
  const Strategy& strategy = input.strategy;
  const workload::Optimizer& adam = input.optimizer;
  // A pipeline cuts a rank's whole batch into its micro-batches; without one they are summed.
  const int local = strategy.micro_batch * (strategy.pp > 1 ? micro_batches : 1);
  FlagArray flags("TRAINING");
  flags.add("--training.local_batch_size", local);
  flags.add("--training.global_batch_size", input.global_batch);
  flags.add("--training.seq_len", input.model.seq);
  add_torchtitan_precision(flags, input);
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

std::vector<std::string> torchtitan_notes(const LaunchInput& input, const TorchtitanModel& model) {
  std::vector<std::string> lines = {"torchtitan 0.2: run it in its folder on every server."};
  const std::vector<std::string> start = start_notes(input, "train.sh");
  lines.insert(lines.end(), start.begin(), start.end());
  lines.emplace_back(
      "CONFIG_FILE is a configuration to begin with, for data and tokenizer; SAVE a folder of "
      "checkpoints, LOAD one to begin with.");
  lines.emplace_back("Left out: evaluation; --validation.enable and its options switch it on.");
  if (!model.lacks.empty()) {
    lines.push_back(fmt::format("None of torchtitan's models has {}: MODEL_MODULE adds {}.",
                                model.lacks, model.name));
  }
  const std::vector<std::string> unknown = unknown_details(input.model);
  lines.insert(lines.end(), unknown.begin(), unknown.end());
  const ModelDetails details = model_details(input.model);
  if (details.rope_scaling != RopeScaling::kNone) {
    lines.push_back(
        fmt::format("Its rope_scaling goes by factor {} beyond {} tokens: see that the "
                    "flavor has it.",
                    details.rope_factor, details.rope_original_seq));
  }
  if (input.strategy.recompute == Recompute::kSelective)
    lines.emplace_back(
        "torchtitan's selective mode recomputes more than attention: slower, smaller.");
  return lines;
}

// Adds the model's module to the flags, and gives the lines that make it.
std::string model_module_lines(const TorchtitanModel& model, FlagArray& flags) {
  if (!model.lacks.empty()) {
    flags.add_expanded("--experimental.custom_import", "\"$MODEL_MODULE\"");
    return fmt::format(
        ": \"${{MODEL_MODULE:?is not set; set it to a Python module that registers the model {} "
        "with torchtitan}}\"\n",
        model.name);
  }
  if (model.definition.empty()) return "";
  flags.add("--experimental.custom_import", "regatta_model");
  return "cat >regatta_model.py <<'END'\n" + model.definition +
         "END\nexport PYTHONPATH=\"$PWD${PYTHONPATH:+:$PYTHONPATH}\"\n";
}

std::string torchtitan_checkpoint_lines(const LaunchInput& input) {
  const std::string& folder = input.checkpoint.folder;
  const int every = input.checkpoint.every > 0 ? input.checkpoint.every : input.steps;
  std::string text = "CHECKPOINTS=()\n";
  if (!folder.empty()) text += fmt::format("SAVE=${{SAVE:-{}}}\n", shell_word(folder));
  return text + fmt::format(
                    "if [[ -n ${{SAVE:-}} ]]; then\n"
                    "  CHECKPOINTS+=(--checkpoint.enable --checkpoint.folder \"$SAVE\"\n"
                    "    --checkpoint.interval \"${{SAVE_INTERVAL:-{}}}\")\n"
                    "fi\n"
                    "if [[ -n ${{LOAD:-}} ]]; then\n"
                    "  CHECKPOINTS+=(--checkpoint.initial_load_path \"$LOAD\")\n"
                    "fi\n",
                    every);
}

}  // namespace

std::string torchtitan_script(const LaunchInput& input, int micro_batches) {
  const TorchtitanModel model = torchtitan_model(input.model);
  FlagArray model_flags("MODEL");
  model_flags.add("--model.name", model.name);
  model_flags.add("--model.flavor", model.flavor);
  const std::string module_lines = model_module_lines(model, model_flags);
  const std::vector<FlagArray> parts = {torchrun_flags(input), model_flags, mesh_flags(input),
                                        step_flags(input, micro_batches)};
  std::string script =
      "#!/bin/bash\n" + script_head(input, torchtitan_notes(input, model)) + "set -euo pipefail\n";
  script += node_rank_lines(input) + nic_lines(input) + module_lines;
  script += torchtitan_checkpoint_lines(input);
  for (const FlagArray& part : parts)
    script += part.text();
  script += fmt::format("exec torchrun {} -m torchtitan.train", parts.front().use());
  script += " ${CONFIG_FILE:+--job.config_file \"$CONFIG_FILE\"}";
  for (std::size_t i = 1; i < parts.size(); ++i)
    script += " \\\n  " + parts[i].use();
  return script + " \\\n  \"${CHECKPOINTS[@]}\" \"$@\"\n";
}

}  // namespace regatta::plan
