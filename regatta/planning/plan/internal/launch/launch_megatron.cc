// Megatron-LM's pretrain_gpt.py. Flags: megatron/training/arguments.py; which release has which:
// CHANGELOG.md of Megatron-Core.
#include <algorithm>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "regatta/base/core/text.h"
#include "regatta/planning/plan/internal/launch/launch_megatron_model.h"
#include "regatta/planning/plan/internal/launch/launch_script.h"
#include "regatta/planning/plan/internal/launch/launch_servers.h"
#include "regatta/planning/plan/internal/launch/model_details.h"

namespace regatta::plan {
namespace {

using workload::ModelShape;
using workload::Offload;
using workload::Precision;
using workload::Recompute;
using workload::Strategy;

// The first release of Megatron-Core that has all flags of the script.
int least_release(const LaunchInput& input) {
  const Strategy& strategy = input.strategy;
  const ModelDetails details = model_details(input.model);
  int release = 9;
  const auto needs = [&](bool is_used, int minor) {
    if (is_used) release = std::max(release, minor);
  };
  needs(input.model.positions == workload::PositionEncoding::kNone, 10);
  needs(details.rope_scaling == RopeScaling::kLlama3, 10);
  needs(strategy.cp > 1 || strategy.shard_ranks > 0, 10);
  needs(has_latent_attention(input.model) || has_experts(input.model), 11);
  needs(strategy.offload == Offload::kOptimizer, 11);
  needs(strategy.shard_ranks > 0 && has_experts(input.model), 13);
  needs(has_experts(input.model) && details.balancing == "global_aux_loss", 13);
  needs(!megatron_stages(input.model, strategy).layout.empty(), 13);
  needs(input.model.mtp_layers > 0, strategy.cp > 1 ? 14 : 13);
  needs(input.model.window.tokens > 0 || input.model.attention_sinks, 15);
  needs(!input.model.layer_pattern.empty() || input.model.experts.latent > 0, 16);
  needs(!input.model.layer_pattern.empty() && input.model.mtp_layers > 0, 17);
  return release;
}

void add_stages(FlagArray& flags, const LaunchInput& input) {
  const MegatronStages stages = megatron_stages(input.model, input.strategy);
  if (stages.layers_per_part > 0)
    flags.add("--num-layers-per-virtual-pipeline-stage", stages.layers_per_part);
  if (stages.first_layers > 0) {
    flags.add("--decoder-first-pipeline-num-layers", stages.first_layers);
    flags.add("--decoder-last-pipeline-num-layers", stages.last_layers);
  }
  if (!stages.layout.empty()) flags.add("--pipeline-model-parallel-layout", stages.layout);
}

void add_optimizer_sharing(FlagArray& flags, const Strategy& strategy) {
  if (strategy.zero == 1) flags.add("--use-distributed-optimizer");
  if (strategy.shard_ranks > 0) {
    flags.add("--num-distributed-optimizer-instances",
              strategy.dp * strategy.cp / strategy.shard_ranks);
  }
  if (strategy.overlap && strategy.dp * strategy.cp > 1) {
    flags.add("--overlap-grad-reduce");
    if (strategy.zero == 1) flags.add("--overlap-param-gather");
  }
  if (strategy.compression == workload::GradientCompression::kBf16)
    flags.add("--grad-reduce-in-bf16");
  if (strategy.offload == Offload::kOptimizer) {
    flags.add("--optimizer-cpu-offload");
    flags.add("--optimizer-offload-fraction", "1.0");
    flags.add("--use-precision-aware-optimizer");
  }
}

void add_precision(FlagArray& flags, const LaunchInput& input) {
  const Precision precision = input.precision;
  if (precision == Precision::kFp16) flags.add("--fp16");
  if (precision == Precision::kBf16 || is_eight_bits_or_less(precision)) flags.add("--bf16");
  if (!is_eight_bits_or_less(precision)) return;
  if (precision == Precision::kFp8) {
    const std::string recipe = fp8_recipe(input.strategy.recompute);
    flags.add("--fp8-format", "hybrid");
    flags.add("--fp8-recipe", recipe);
    if (recipe == "delayed") flags.add("--fp8-amax-history-len", 1024);
    if (recipe == "delayed") flags.add("--fp8-amax-compute-algo", "max");
  } else if (precision == Precision::kMxfp8) {
    flags.add("--fp8-format", "e4m3");
    flags.add("--fp8-recipe", "mxfp8");
  } else {
    flags.add("--fp4-format", "e2m1");
    flags.add("--fp4-recipe", "nvfp4");
  }
  flags.add("--transformer-impl", "transformer_engine");
}

FlagArray training_flags(const LaunchInput& input) {
  const workload::Optimizer& adam = input.optimizer;
  FlagArray flags("TRAINING");
  flags.add("--micro-batch-size", input.strategy.micro_batch);
  flags.add("--global-batch-size", input.global_batch);
  add_precision(flags, input);
  flags.add("--attention-dropout", input.dropout);
  flags.add("--hidden-dropout", input.dropout);
  flags.add("--train-iters", input.steps);
  flags.add("--lr", adam.lr);
  flags.add("--min-lr", fmt::format("{:.6g}", adam.lr * kFinalLearningRateFraction));
  flags.add("--lr-decay-style", "cosine");
  flags.add("--lr-warmup-iters", warmup_steps(input));
  flags.add("--adam-beta1", adam.beta1);
  flags.add("--adam-beta2", adam.beta2);
  flags.add("--adam-eps", adam.eps);
  flags.add("--weight-decay", adam.weight_decay);
  flags.add("--clip-grad", adam.clip_norm);
  flags.add("--log-interval", 1);
  flags.add_expanded("--eval-iters", "\"${EVAL_ITERS:-0}\"");
  flags.add_expanded("--eval-interval", "\"${EVAL_INTERVAL:-1000}\"");
  // The kernels of attention mask by themselves; a mask of its own has seq x seq bytes a sample.
  flags.add("--no-create-attention-mask-in-dataloader");
  return flags;
}

// How the ranks divide the work.
FlagArray degree_flags(const LaunchInput& input) {
  const Strategy& strategy = input.strategy;
  FlagArray flags("PARALLEL");
  flags.add("--tensor-model-parallel-size", strategy.tp);
  flags.add("--pipeline-model-parallel-size", strategy.pp);
  flags.add("--context-parallel-size", strategy.cp);
  if (strategy.cp > 1) {
    const bool is_ring = strategy.context == workload::ContextParallelism::kRing;
    flags.add("--cp-comm-type", is_ring ? "p2p" : "a2a");
  }
  add_stages(flags, input);
  // One rank has nothing to share, and Megatron-LM switches it off with a warning.
  if (strategy.sequence_parallel && strategy.tp > 1) flags.add("--sequence-parallel");
  add_optimizer_sharing(flags, strategy);
  if (strategy.recompute == Recompute::kSelective)
    flags.add("--recompute-granularity", "selective");
  if (const auto modules = recomputed_modules(input.model, strategy.recompute); !modules.empty()) {
    flags.add("--recompute-granularity", "selective");
    flags.add_expanded("--recompute-modules", join(modules, " "));
  }
  if (strategy.recompute == Recompute::kFull) {
    flags.add("--recompute-granularity", "full");
    flags.add("--recompute-method", "uniform");
    flags.add("--recompute-num-layers", 1);
  }
  return flags;
}

// A null tokenizer adds one entry of its own.
std::string data_words(const ModelShape& model) {
  return fmt::format("--mock-data --tokenizer-type NullTokenizer --vocab-size {}", model.vocab - 1);
}

std::string checkpoint_lines(const LaunchInput& input) {
  const std::string& folder = input.checkpoint.folder;
  const int every = input.checkpoint.every > 0 ? input.checkpoint.every : input.steps;
  std::string text = "CHECKPOINTS=()\n";
  if (!folder.empty()) {
    const std::string word = shell_word(folder);
    text += fmt::format("SAVE=${{SAVE:-{0}}}\nLOAD=${{LOAD:-{0}}}\n", word);
  }
  return text + fmt::format(
                    "if [[ -n ${{SAVE:-}} ]]; then\n"
                    "  CHECKPOINTS+=(--save \"$SAVE\" --save-interval \"${{SAVE_INTERVAL:-{}}}\")\n"
                    "fi\n"
                    "if [[ -n ${{LOAD:-}} ]]; then CHECKPOINTS+=(--load \"$LOAD\"); fi\n",
                    every);
}

std::vector<std::string> megatron_notes(const LaunchInput& input) {
  std::vector<std::string> lines = {
      fmt::format("Megatron-LM with Megatron-Core 0.{} or later: run it in its folder on every "
                  "server.",
                  least_release(input))};
  const auto add = [&](const std::vector<std::string>& more) {
    lines.insert(lines.end(), more.begin(), more.end());
  };
  add(start_notes(input, "train.sh"));
  lines.emplace_back(
      "DATA_ARGS replaces the made-up data; SAVE, LOAD, SAVE_INTERVAL, EVAL_ITERS and "
      "EVAL_INTERVAL are those of Megatron-LM.");
  if (model_details(input.model).rope_scaling == RopeScaling::kYarn &&
      !has_latent_attention(input.model))
    lines.emplace_back("Left out: rope_scaling, which Megatron-LM has for latent attention alone.");
  add(unknown_details(input.model));
  add(vocabulary_notes(input));
  return lines;
}

}  // namespace

std::string megatron_script(const LaunchInput& input) {
  std::vector<FlagArray> parts = {torchrun_flags(input), megatron_model_flags(input.model)};
  if (has_experts(input.model)) parts.push_back(megatron_expert_flags(input));
  parts.push_back(degree_flags(input));
  parts.push_back(training_flags(input));

  std::string script =
      "#!/bin/bash\n" + script_head(input, megatron_notes(input)) + "set -euo pipefail\n";
  script += node_rank_lines(input) + nic_lines(input);
  script +=
      "# Kernels start in the order of their launch, so that communication begins before "
      "what hides it.\nexport CUDA_DEVICE_MAX_CONNECTIONS=1\n";
  script += fmt::format("read -ra DATA <<<\"${{DATA_ARGS:-{}}}\"\n", data_words(input.model));
  script += checkpoint_lines(input);
  for (const FlagArray& part : parts)
    script += part.text();
  const char* const program =
      input.model.layer_pattern.empty() ? "pretrain_gpt.py" : "pretrain_mamba.py";
  script += fmt::format("exec torchrun {} {}", parts.front().use(), program);
  for (std::size_t i = 1; i < parts.size(); ++i)
    script += " \\\n  " + parts[i].use();
  return script + " \\\n  \"${CHECKPOINTS[@]}\" \"${DATA[@]}\" \"$@\"\n";
}

}  // namespace regatta::plan
