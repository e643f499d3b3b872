#include "regatta/model/workload/runtime_support.h"

#include <string>

#include <fmt/format.h>

#include "regatta/model/workload/blocks.h"

namespace regatta::workload {
namespace {

constexpr int kByteVocab = 256;

UnsupportedFeature unsupported_part(const ModelShape& model) {
  const ModelShape usual;
  const AttentionShape attention = attention_shape(model);
  if (has_experts(model) || model.kind != ModelKind::kGpt)
    return {"kind " + model_kind_name(model), "kind gpt"};
  if (!are_kinds_in_order(model)) return {"a window or layer_pattern", "equal layers"};
  if (model.mtp_layers > 0) return {fmt::format("mtp_layers {}", model.mtp_layers), "mtp_layers 0"};
  if (is_frozen(model)) return {"tuning lora", "tuning full"};
  if (model.packed > 0) return {fmt::format("packed {}", model.packed), "packed 0"};
  if (model.qk_norms) return {"qk_norms true", "qk_norms false"};
  if (model.attention_sinks) return {"attention_sinks true", "attention_sinks false"};
  if (has_latent_attention(model)) return {"attention mla", "attention mha"};
  if (attention.kv_heads != model.heads) {
    return {fmt::format("kv_heads {}", attention.kv_heads),
            fmt::format("kv_heads {}", model.heads)};
  }
  if (attention.key_dim * model.heads != model.hidden) {
    return {fmt::format("head_dim {}", attention.key_dim), "a head_dim of hidden / heads"};
  }
  if (model.activation != usual.activation)
    return {"activation " + to_string(model.activation), "activation gelu"};
  if (model.positions != usual.positions)
    return {"positions " + to_string(model.positions), "positions learned"};
  if (model.norm != usual.norm) return {"norm " + to_string(model.norm), "norm layernorm"};
  if (!model.linear_biases) return {"linear_biases false", "linear_biases true"};
  if (model.norm_eps != usual.norm_eps)
    return {fmt::format("norm_eps {}", model.norm_eps), fmt::format("norm_eps {}", usual.norm_eps)};
  return {};
}

UnsupportedFeature unsupported_part(const Strategy& strategy) {
  const Strategy usual;
  if (strategy.cp != 1) return {fmt::format("cp {}", strategy.cp), "cp 1"};
  if (strategy.ep != 1) return {fmt::format("ep {}", strategy.ep), "ep 1"};
  if (is_folded(strategy)) return {fmt::format("etp {}", strategy.etp), "etp as tp"};
  if (strategy.schedule != usual.schedule)
    return {"schedule " + to_string(strategy.schedule), "schedule 1f1b"};
  if (strategy.virtual_stages != 1)
    return {fmt::format("virtual_stages {}", strategy.virtual_stages), "virtual_stages 1"};
  if (strategy.sequence_parallel) return {"sequence_parallel true", "sequence_parallel false"};
  if (strategy.zero != 0) return {fmt::format("zero {}", strategy.zero), "zero 0"};
  if (strategy.offload != usual.offload)
    return {"offload " + to_string(strategy.offload), "offload none"};
  if (strategy.recompute != Recompute::kNone && strategy.recompute != Recompute::kFull)
    return {"recompute " + to_string(strategy.recompute), "recompute none or full"};
  return {};
}

Error missing(const char* key, const char* remedy) {
  return {Code::kInvalidInput, fmt::format("{} is missing; {}", key, remedy)};
}

}  // namespace

UnsupportedFeature find_unsupported_feature(const ModelShape& model, const Strategy& strategy,
                                            Precision precision) {
  UnsupportedFeature found = unsupported_part(model);
  if (found.what.empty()) found = unsupported_part(strategy);
  const bool is_executed = precision == Precision::kFp32 || precision == Precision::kBf16;
  if (found.what.empty() && !is_executed)
    found = {"precision " + to_string(precision), "precision fp32 or bf16"};
  return found;
}

Status check_runnable(const ModelShape& model, const Strategy& strategy, Precision precision) {
  const UnsupportedFeature found = find_unsupported_feature(model, strategy, precision);
  if (!found.what.empty()) {
    return Error{Code::kUnsupported,
                 fmt::format("{} is not yet executed by the training runtime; use {}, or plan for "
                             "a cluster of GPUs",
                             found.what, found.instead)};
  }
  if (strategy.tp > 0 && model.vocab % strategy.tp == 0) return {};
  return Error{Code::kInvalidInput, fmt::format("tp {} does not divide vocab {}; choose a divisor "
                                                "of {}",
                                                strategy.tp, model.vocab, model.vocab)};
}

Status check_runnable(const Job& job) {
  REGATTA_TRY_DO(check_runnable(job.model, requested(job.strategy), job.precision));
  if (job.data_text.empty()) return missing("data", "add data: {text: FILE} to the job");
  if (job.steps < 1) return missing("steps", "add steps: 100 to the job, or give --steps 100");
  if (job.model.vocab >= kByteVocab) return {};
  return Error{Code::kInvalidInput,
               fmt::format("vocab {} is too small; the tokens are bytes, so write at least {}",
                           job.model.vocab, kByteVocab)};
}

}  // namespace regatta::workload
