// Megatron-LM's pretrain_gpt.py. Flags: megatron/training/arguments.py; which release has which:
// CHANGELOG.md of Megatron-Core.
#include <algorithm>
#include <cmath>
#include <span>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "regatta/planning/plan/internal/launch/launch_script.h"

namespace regatta::plan {
namespace {

using workload::ModelShape;
using workload::Offload;
using workload::PipelineSchedule;
using workload::Precision;
using workload::Recompute;
using workload::Strategy;

constexpr auto kMegatron = Launcher::kMegatron;
// The tokenizer's entries are padded to a multiple of this and tp: Megatron-LM's default.
constexpr int kVocabularyMultiple = 128;

Status check_megatron_sharing(const Strategy& strategy) {
  if (strategy.zero >= 2) {
    return unsupported_by(
        kMegatron,
        fmt::format("zero {} is FSDP, which shares what this script keeps whole", strategy.zero),
        "set zero 1, or launch with torchrun");
  }
  if (strategy.shard_ranks > 0 && strategy.zero != 1) {
    return unsupported_by(kMegatron,
                          fmt::format("shard_ranks {} without zero 1", strategy.shard_ranks),
                          "set zero 1, or leave shard_ranks out");
  }
  if (strategy.offload == Offload::kActivations || strategy.offload == Offload::kBoth)
    return unsupported_by(kMegatron, "activations stay on the device",
                          "set offload none or optimizer");
  if (strategy.offload == Offload::kOptimizer && strategy.zero != 1)
    return unsupported_by(kMegatron, "only a shared optimizer can wait in the server's memory",
                          "set zero 1");
  if (strategy.compression != workload::GradientCompression::kNone &&
      strategy.compression != workload::GradientCompression::kBf16) {
    return unsupported_by(
        kMegatron, "gradients travel as fp32 or bf16, not as " + to_string(strategy.compression),
        "set compression none or bf16");
  }
  return {};
}

Status check(const LaunchInput& input, int micro_batches) {
  const Strategy& strategy = input.strategy;
  const ModelShape& model = input.model;
  if (strategy.pp > 1 && strategy.schedule != PipelineSchedule::k1F1B &&
      strategy.schedule != PipelineSchedule::kInterleaved) {
    return unsupported_by(kMegatron, "it has no schedule " + to_string(strategy.schedule),
                          "set schedule 1f1b or interleaved");
  }
  if (strategy.virtual_stages > 1 && (strategy.pp == 1 || micro_batches % strategy.pp != 0)) {
    return unsupported_by(kMegatron,
                          fmt::format("interleaved stages need pp above 1 and a multiple of it in "
                                      "micro-batches, not pp {} and {}",
                                      strategy.pp, micro_batches),
                          "set virtual_stages 1, or another micro_batch");
  }
  if (attention_shape(model).kv_heads % strategy.tp != 0) {
    return unsupported_by(kMegatron,
                          fmt::format("tp {} does not divide the {} heads of keys and values",
                                      strategy.tp, attention_shape(model).kv_heads),
                          "choose a divisor of them");
  }
  if (model.positions == workload::PositionEncoding::kRotary &&
      model.rope_theta != std::floor(model.rope_theta))
    return unsupported_by(
        kMegatron, fmt::format("rope_theta {} is no whole number", model.rope_theta), "round it");
  if (has_experts(model) && strategy.tp > 1 && !strategy.sequence_parallel)
    return unsupported_by(kMegatron, "experts with tp need shared tokens",
                          "set sequence_parallel, or tp 1");
  return check_megatron_sharing(strategy);
}

// The first release of Megatron-Core that has all flags of the script.
int least_release(const LaunchInput& input) {
  const Strategy& strategy = input.strategy;
  int release = 9;
  const auto needs = [&](bool is_used, int minor) {
    if (is_used) release = std::max(release, minor);
  };
  needs(has_latent_attention(input.model) || has_experts(input.model), 10);
  needs(input.model.positions == workload::PositionEncoding::kNone, 10);
  needs(strategy.cp > 1 || strategy.shard_ranks > 0, 10);
  needs(strategy.offload == Offload::kOptimizer, 11);
  needs(strategy.shard_ranks > 0 && has_experts(input.model), 13);
  return release;
}

// Blocks of every part of the model in its order, as Megatron-LM's layout writes them: E the
// embedding, t a block, L the loss.
std::string layout(const std::vector<int>& layers) {
  std::string text;
  for (const int count : layers)
    text += fmt::format("{}t*{}", text.empty() ? 'E' : '|', count);
  return text + "L";
}

// How the blocks divide into stages; the release that can say so.
int add_stages(FlagArray& flags, const ModelShape& model, const Strategy& strategy) {
  if (strategy.pp == 1) return 9;
  const std::vector<int> layers = layers_of_parts(model, strategy);
  if (are_equal(layers)) {
    if (strategy.virtual_stages > 1)
      flags.add("--num-layers-per-virtual-pipeline-stage", layers.front());
    return 9;
  }
  if (strategy.virtual_stages == 1 && are_equal(std::span(layers).subspan(1, layers.size() - 2))) {
    flags.add("--decoder-first-pipeline-num-layers", layers.front());
    flags.add("--decoder-last-pipeline-num-layers", layers.back());
    return 9;
  }
  flags.add("--pipeline-model-parallel-layout", layout(layers));
  return 13;
}

void add_attention(FlagArray& flags, const ModelShape& model) {
  const workload::AttentionShape shape = attention_shape(model);
  flags.add("--num-attention-heads", model.heads);
  if (has_latent_attention(model)) {
    const workload::LatentAttention& latent = model.latent;
    flags.add("--multi-latent-attention");
    if (latent.query_rank > 0) flags.add("--q-lora-rank", latent.query_rank);
    flags.add("--kv-lora-rank", latent.kv_rank);
    flags.add("--qk-head-dim", latent.plain_dim);
    flags.add("--qk-pos-emb-head-dim", latent.rotary_dim);
    flags.add("--v-head-dim", latent.value_dim);
  } else {
    flags.add("--kv-channels", shape.key_dim);
    if (shape.kv_heads != shape.heads) {
      flags.add("--group-query-attention");
      flags.add("--num-query-groups", shape.kv_heads);
    }
  }
}

FlagArray model_flags(const ModelShape& model) {
  FlagArray flags("MODEL");
  flags.add("--num-layers", model.layers);
  flags.add("--hidden-size", model.hidden);
  flags.add("--ffn-hidden-size", model.ffn_hidden);
  add_attention(flags, model);
  flags.add("--seq-length", model.seq);
  flags.add("--max-position-embeddings", model.seq);
  switch (model.positions) {
    case workload::PositionEncoding::kLearned:
      flags.add("--position-embedding-type", "learned_absolute");
      break;
    case workload::PositionEncoding::kRotary:
      flags.add("--position-embedding-type", "rope");
      flags.add("--rotary-base", static_cast<long long>(model.rope_theta));
      flags.add("--rotary-percent", "1.0");
      break;
    case workload::PositionEncoding::kNone:
      flags.add("--position-embedding-type", "none");
  }
  const bool is_rms = model.norm == workload::NormKind::kRmsNorm;
  flags.add("--normalization", is_rms ? "RMSNorm" : "LayerNorm");
  flags.add("--norm-epsilon", model.norm_eps);
  if (model.activation == workload::Activation::kSwiglu) flags.add("--swiglu");
  if (!model.tied_embeddings) flags.add("--untie-embeddings-and-output-weights");
  if (!model.linear_biases) flags.add("--disable-bias-linear");
  if (!model.linear_biases && model.qkv_biases) flags.add("--add-qkv-bias");
  flags.add("--make-vocab-size-divisible-by", kVocabularyMultiple);
  return flags;
}

FlagArray expert_flags(const ModelShape& model, const Strategy& strategy) {
  const workload::Experts& experts = model.experts;
  FlagArray flags("EXPERTS");
  flags.add("--num-experts", experts.count);
  flags.add("--expert-model-parallel-size", strategy.ep);
  flags.add("--expert-tensor-parallel-size", strategy.expert_tp());
  flags.add("--moe-ffn-hidden-size", experts.ffn_hidden);
  if (experts.shared > 0)
    flags.add("--moe-shared-expert-intermediate-size", experts.shared * experts.ffn_hidden);
  if (experts.dense_layers > 0) {
    flags.add("--moe-layer-freq", fmt::format("([0]*{}+[1]*{})", experts.dense_layers,
                                              model.layers - experts.dense_layers));
  }
  flags.add("--moe-router-topk", experts.top_k);
  flags.add("--moe-router-load-balancing-type", "aux_loss");
  flags.add("--moe-aux-loss-coeff", 0.01);
  if (experts.capacity > 0) flags.add("--moe-expert-capacity-factor", experts.capacity);
  flags.add("--moe-token-dispatcher-type", "alltoall");
  flags.add("--moe-grouped-gemm");
  return flags;
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

void add_precision(FlagArray& flags, Precision precision) {
  if (precision == Precision::kFp16) flags.add("--fp16");
  if (precision == Precision::kBf16 || is_eight_bits_or_less(precision)) flags.add("--bf16");
  if (!is_eight_bits_or_less(precision)) return;
  if (precision == Precision::kFp8) {
    flags.add("--fp8-format", "hybrid");
    flags.add("--fp8-amax-history-len", 1024);
    flags.add("--fp8-amax-compute-algo", "max");
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
  add_precision(flags, input.precision);
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
  flags.add("--eval-iters", 0);
  return flags;
}

// The modules of Megatron-Core that are recomputed in blocks with experts.
std::string recomputed_modules(const ModelShape& model, Recompute recompute) {
  std::string modules = "layernorm";
  if (has_latent_attention(model)) modules += " mla_up_proj";
  return modules + (recompute == Recompute::kExperts ? " moe" : " moe_act");
}

// How the ranks divide the work; the release that can say so.
int add_degrees(FlagArray& flags, const LaunchInput& input) {
  const Strategy& strategy = input.strategy;
  flags.add("--tensor-model-parallel-size", strategy.tp);
  flags.add("--pipeline-model-parallel-size", strategy.pp);
  flags.add("--context-parallel-size", strategy.cp);
  if (strategy.cp > 1) {
    const bool is_ring = strategy.context == workload::ContextParallelism::kRing;
    flags.add("--cp-comm-type", is_ring ? "p2p" : "a2a");
  }
  const int release = add_stages(flags, input.model, strategy);
  // One rank has nothing to share, and Megatron-LM switches it off with a warning.
  if (strategy.sequence_parallel && strategy.tp > 1) flags.add("--sequence-parallel");
  add_optimizer_sharing(flags, strategy);
  if (strategy.recompute == Recompute::kSelective)
    flags.add("--recompute-granularity", "selective");
  if (needs_experts(strategy.recompute)) {
    flags.add("--recompute-granularity", "selective");
    flags.add("--recompute-modules", recomputed_modules(input.model, strategy.recompute));
  }
  if (strategy.recompute == Recompute::kFull) {
    flags.add("--recompute-granularity", "full");
    flags.add("--recompute-method", "uniform");
    flags.add("--recompute-num-layers", 1);
  }
  return release;
}

// A null tokenizer adds one entry of its own.
std::string data_words(const ModelShape& model) {
  return fmt::format("--mock-data --tokenizer-type NullTokenizer --vocab-size {}", model.vocab - 1);
}

std::vector<std::string> notes(const LaunchInput& input, int release) {
  const long long multiple = static_cast<long long>(kVocabularyMultiple) * input.strategy.tp;
  const long long padded = (input.model.vocab + multiple - 1) / multiple * multiple;
  std::vector<std::string> lines = {
      fmt::format("Megatron-LM with Megatron-Core 0.{} or later: run it in its folder on every "
                  "server,",
                  release),
      "MASTER_ADDR the first server, NODE_RANK this server's number. DATA_ARGS replaces the "
      "made-up data."};
  if (padded != input.model.vocab) {
    lines.push_back(fmt::format("The vocabulary of {} is padded to {}, a multiple of {} x tp.",
                                input.model.vocab, padded, kVocabularyMultiple));
  }
  return lines;
}

}  // namespace

Result<std::string> megatron_script(const LaunchInput& input, int micro_batches) {
  REGATTA_TRY_DO(check(input, micro_batches));
  FlagArray parallel("PARALLEL");
  const int release = std::max(least_release(input), add_degrees(parallel, input));
  std::vector<FlagArray> parts = {torchrun_flags(input), model_flags(input.model)};
  if (has_experts(input.model)) parts.push_back(expert_flags(input.model, input.strategy));
  parts.push_back(parallel);
  parts.push_back(training_flags(input));

  std::string script = script_head(input, notes(input, release));
  script +=
      "# Kernels start in the order of their launch, so that communication begins before "
      "what hides it.\nexport CUDA_DEVICE_MAX_CONNECTIONS=1\n";
  script += fmt::format("read -ra DATA <<<\"${{DATA_ARGS:-{}}}\"\n", data_words(input.model));
  for (const FlagArray& part : parts)
    script += part.text();
  script += fmt::format("exec torchrun {} pretrain_gpt.py", parts.front().use());
  for (std::size_t i = 1; i < parts.size(); ++i)
    script += " \\\n  " + parts[i].use();
  return script + " \\\n  \"${DATA[@]}\" \"$@\"\n";
}

}  // namespace regatta::plan
