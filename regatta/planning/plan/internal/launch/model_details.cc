// Sources: the published configurations of the models (config.json), and what the papers say that
// these leave out: DeepSeek-V3, 2024, section 4.2 (bias, no scaling of angles within 4,096 tokens);
// Qwen3, 2025, section 2 (norms of queries and keys, balance over the global batch); gpt-oss, 2025
// (the gate in its published code); Nemotron 3, 2025 and 2026 (squared ReLU, the router).
#include "regatta/planning/plan/internal/launch/model_details.h"

#include <string>
#include <string_view>
#include <vector>

namespace regatta::plan {
namespace {

using workload::ModelShape;

void set_angles(ModelDetails& details, const ModelShape& model, RopeScaling scaling, double factor,
                int original_seq) {
  details.rope_original_seq = original_seq;
  if (model.seq <= original_seq) return;
  details.rope_scaling = scaling;
  details.rope_factor = factor;
}

ModelDetails deepseek_details(const ModelShape& model) {
  ModelDetails details;
  details.weighs_all_experts = true;
  details.balancing = "seq_aux_loss";
  const bool is_kimi = model.preset == "kimi-k2";
  if (is_kimi || model.preset == "deepseek-v3") {
    details.has_sigmoid_router = true;
    details.has_router_bias = true;
    details.balancing_coefficient = 1e-4;
    details.router_scaling = is_kimi ? 2.827 : 2.5;
  } else {
    details.balancing_coefficient = 1e-3;
    if (model.preset == "deepseek-v2") details.router_scaling = 16;
    details.yarn_mscale = 0.707;
  }
  set_angles(details, model, RopeScaling::kYarn, is_kimi ? 32 : 40, 4096);
  return details;
}

ModelDetails nemotron_details(const ModelShape& model) {
  ModelDetails details;
  details.has_squared_relu = true;
  details.has_sigmoid_router = true;
  details.has_router_bias = true;
  details.router_scaling = model.preset == "nemotron3-super" ? 5 : 2.5;
  details.balancing = "seq_aux_loss";
  details.balancing_coefficient = 1e-4;
  return details;
}

}  // namespace

ModelDetails model_details(const ModelShape& model) {
  const auto is = [&](std::string_view family) { return model.preset.starts_with(family); };
  ModelDetails details;
  if (is("deepseek") || is("kimi")) {
    details = deepseek_details(model);
  } else if (is("qwen3")) {
    details.balancing = "global_aux_loss";
    details.balancing_coefficient = 1e-3;
  } else if (is("llama3")) {
    set_angles(details, model, RopeScaling::kLlama3, is("llama3.2") ? 32 : 8, 8192);
  } else if (is("mixtral")) {
    details.balancing_coefficient = 0.02;
  } else if (is("gpt-oss")) {
    details.has_clamped_gate = true;
    set_angles(details, model, RopeScaling::kYarn, 32, 4096);
  } else if (is("nemotron3")) {
    details = nemotron_details(model);
  }
  details.is_known = !model.preset.empty();
  return details;
}

std::vector<std::string> unknown_details(const ModelShape& model) {
  if (!model.preset.empty()) return {};
  std::vector<std::string> lines;
  if (model.positions == workload::PositionEncoding::kRotary) {
    lines.emplace_back(
        "Left out, as the job does not say them: rope_scaling, norms of queries and keys.");
  }
  if (has_experts(model)) {
    lines.emplace_back(
        "The job says nothing of the router: scores are a softmax without groups or bias, balanced "
        "by a loss.");
  }
  return lines;
}

}  // namespace regatta::plan
