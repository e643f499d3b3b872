// The model of workload/job.h.
#include <algorithm>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "regatta/base/core/json.h"
#include "regatta/model/workload/internal/mixed_layers.h"
#include "regatta/model/workload/job.h"

namespace regatta::workload {
namespace {

using nlohmann::json;

void add_latent(json& object, const LatentAttention& latent) {
  object["q_lora_rank"] = latent.query_rank;
  object["kv_lora_rank"] = latent.kv_rank;
  object["qk_nope_head_dim"] = latent.plain_dim;
  object["qk_rope_head_dim"] = latent.rotary_dim;
  object["v_head_dim"] = latent.value_dim;
}

LatentAttention read_latent(const JsonReader& reader) {
  LatentAttention latent;
  reader.read("q_lora_rank", latent.query_rank);
  reader.read("kv_lora_rank", latent.kv_rank);
  reader.read("qk_nope_head_dim", latent.plain_dim);
  reader.read("qk_rope_head_dim", latent.rotary_dim);
  reader.read("v_head_dim", latent.value_dim);
  if (std::min({latent.kv_rank, latent.plain_dim, latent.rotary_dim, latent.value_dim}) < 1 ||
      latent.query_rank < 0)
    reader.fail("every size of latent attention must be at least 1, but q_lora_rank 0");
  return latent;
}

void add_experts(json& object, const Experts& experts) {
  object["experts"] = experts.count;
  object["shared_experts"] = experts.shared;
  object["top_k"] = experts.top_k;
  object["expert_ffn_hidden"] = experts.ffn_hidden;
  object["expert_groups"] = experts.groups;
  object["top_groups"] = experts.top_groups;
  object["dense_layers"] = experts.dense_layers;
  object["capacity"] = experts.capacity;
  object["imbalance"] = experts.imbalance;
}

Experts read_experts(const JsonReader& reader, int layers) {
  Experts experts;
  reader.read("experts", experts.count);
  reader.read("shared_experts", experts.shared);
  reader.read("top_k", experts.top_k);
  reader.read("expert_ffn_hidden", experts.ffn_hidden);
  reader.read_if("expert_groups", experts.groups);
  reader.read_if("top_groups", experts.top_groups);
  reader.read("dense_layers", experts.dense_layers);
  reader.read("capacity", experts.capacity);
  reader.read("imbalance", experts.imbalance);
  if (std::min({experts.count, experts.top_k, experts.ffn_hidden}) < 1)
    reader.fail("experts, top_k and expert_ffn_hidden must be at least 1");
  if (experts.top_k > experts.count) reader.at("top_k").fail("exceeds the experts");
  if (experts.dense_layers < 0 || experts.dense_layers > layers)
    reader.at("dense_layers").fail("is not from 0 to the layers");
  if (experts.shared < 0 || !(experts.capacity >= 0) || !(experts.imbalance >= 1))
    reader.fail("shared_experts and capacity must be at least 0, imbalance 1");
  return experts;
}

ModelKind read_kind(const JsonReader& reader) {
  static const std::vector<std::string> kKinds{"gpt", "encoder", "moe"};
  const JsonReader value = reader.at("kind");
  const std::string& kind = kKinds[value.choice(kKinds)];
  if (kind == "gpt" && reader.has("experts")) value.fail("gpt has no experts; write moe");
  if (kind == "moe") static_cast<void>(reader.at("experts"));
  return kind == "encoder" ? ModelKind::kEncoder : ModelKind::kGpt;
}

void check_sizes(const JsonReader& reader, const ModelShape& model) {
  if (std::min(
          {model.layers, model.hidden, model.heads, model.ffn_hidden, model.seq, model.vocab}) < 1)
    return reader.fail("every size must be at least 1");
  if (model.kv_heads < 0 || (model.kv_heads > 0 && model.heads % model.kv_heads != 0))
    reader.at("kv_heads").fail("does not divide the heads");
  if (!(model.rope_theta > 0) || !(model.norm_eps > 0))
    reader.fail("rope_theta and norm_eps must be above 0");
  if (const auto found = find_layer_contradiction(model))
    reader.fail(found->key + ": " + found->problem);
  if (is_too_large(model)) reader.fail("the sizes make more than 10^15 parameters");
}

}  // namespace

json model_to_json(const ModelShape& model) {
  json object = {{"kind", model_kind_name(model)},
                 {"preset", model.preset},
                 {"layers", model.layers},
                 {"hidden", model.hidden},
                 {"heads", model.heads},
                 {"kv_heads", model.kv_heads},
                 {"head_dim", model.head_dim},
                 {"ffn_hidden", model.ffn_hidden},
                 {"seq", model.seq},
                 {"vocab", model.vocab},
                 {"activation", to_string(model.activation)},
                 {"positions", to_string(model.positions)},
                 {"norm", to_string(model.norm)},
                 {"linear_biases", model.linear_biases},
                 {"qkv_biases", model.qkv_biases},
                 {"tied_embeddings", model.tied_embeddings}};
  const ModelShape usual;
  if (model.rope_theta != usual.rope_theta) object["rope_theta"] = model.rope_theta;
  if (model.norm_eps != usual.norm_eps) object["norm_eps"] = model.norm_eps;
  if (has_latent_attention(model)) add_latent(object, model.latent);
  if (has_experts(model)) add_experts(object, model.experts);
  add_mixed_layers(object, model);
  return object;
}

ModelShape read_model(const JsonReader& reader) {
  ModelShape model;
  model.kind = read_kind(reader);
  reader.read("preset", model.preset);
  reader.read("layers", model.layers);
  reader.read("hidden", model.hidden);
  reader.read("heads", model.heads);
  reader.read_if("kv_heads", model.kv_heads);
  reader.read_if("head_dim", model.head_dim, IntRange{.low = 0});
  reader.read("ffn_hidden", model.ffn_hidden);
  reader.read("seq", model.seq);
  reader.read("vocab", model.vocab);
  reader.read("activation", model.activation, kActivationKinds);
  reader.read_if("positions", model.positions, kPositionEncodings);
  reader.read_if("norm", model.norm, kNormKinds);
  reader.read_if("linear_biases", model.linear_biases);
  reader.read_if("qkv_biases", model.qkv_biases);
  reader.read_if("rope_theta", model.rope_theta);
  reader.read_if("norm_eps", model.norm_eps);
  reader.read("tied_embeddings", model.tied_embeddings);
  if (reader.has("kv_lora_rank")) model.latent = read_latent(reader);
  if (reader.has("experts")) model.experts = read_experts(reader, model.layers);
  read_mixed_layers(reader, model);
  check_sizes(reader, model);
  return model;
}

}  // namespace regatta::workload
