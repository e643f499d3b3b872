#include "regatta/model/workload/internal/model_yaml.h"

#include <algorithm>
#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "regatta/base/core/text.h"
#include "regatta/model/workload/internal/mixed_layers.h"
#include "regatta/model/workload/internal/yaml_enums.h"
#include "regatta/model/workload/model.h"

namespace regatta::workload {
namespace {

// Limits of single sizes; is_too_large() bounds their product.
constexpr IntRange kLayers{1, 10'000};
constexpr IntRange kWidth{1, 1'000'000};
constexpr IntRange kTokens{1, 10'000'000};
constexpr IntRange kExperts{1, 100'000};
constexpr double kFactorMax = 1e6;
constexpr NumberRange kRopeTheta{1, 1e12};
constexpr NumberRange kNormEps{1e-30, 1};

using Keys = std::initializer_list<const char*>;
constexpr Keys kSizeKeys = {"layers",     "hidden", "heads", "kv_heads", "head_dim",
                            "ffn_hidden", "seq",    "vocab", "attention"};
constexpr Keys kKindKeys = {"activation", "positions",       "norm",       "linear_biases",
                            "qkv_biases", "tied_embeddings", "rope_theta", "norm_eps"};
constexpr Keys kLatentKeys = {"q_lora_rank", "kv_lora_rank", "qk_nope_head_dim", "qk_rope_head_dim",
                              "v_head_dim"};
constexpr Keys kExpertKeys = {"experts",           "shared_experts", "top_k",
                              "expert_ffn_hidden", "dense_layers",   "capacity",
                              "imbalance",         "expert_groups",  "top_groups"};

std::vector<std::string> all_keys() {
  std::vector<std::string> keys = {"kind", "preset", "from"};
  for (const auto& some : {kSizeKeys, kLatentKeys, kKindKeys, kExpertKeys})
    keys.insert(keys.end(), some.begin(), some.end());
  const std::vector<std::string> mixed = mixed_layer_keys();
  keys.insert(keys.end(), mixed.begin(), mixed.end());
  return keys;
}

// The first of `keys` that the map has; "" when none.
std::string first_of(const YamlMap& map, Keys keys) {
  for (const char* key : keys)
    if (map.has(key)) return key;
  return "";
}

std::optional<ModelShape> preset_model(const YamlMap& map) {
  const std::string name = map.text("preset");
  const ModelPreset* preset = find_model_preset(name);
  if (preset != nullptr) return preset->model;
  const std::string nearest = nearest_word(name, model_preset_names());
  map.fail("preset",
           fmt::format("no model is called '{}'; {}", name,
                       nearest.empty() ? "choose one of " + join(model_preset_names(), ", ")
                                       : fmt::format("did you mean '{}'?", nearest)));
  return std::nullopt;
}

std::optional<ModelShape> loaded_model(const YamlMap& map, const ModelLoader& load) {
  const std::string path = map.text("from");
  if (!load) {
    map.fail("from", "no file can be read here; write the sizes out", Code::kUnsupported);
    return std::nullopt;
  }
  const Result<ModelShape> model = load(path);
  if (model) return *model;
  map.fail("from", model.error().message, model.error().code);
  return std::nullopt;
}

// Without sizes where the map names none.
std::optional<ModelShape> base_model(const YamlMap& map, const ModelLoader& load) {
  if (map.has("preset") && map.has("from")) {
    map.fail("from", "a model has one origin; leave out from or preset");
    return std::nullopt;
  }
  if (map.has("preset")) return preset_model(map);
  if (map.has("from")) return loaded_model(map, load);
  return ModelShape{};
}

// Marks the sizes that follow from others, so that they follow when the job changes those.
void loosen(ModelShape& model) {
  if (model.kv_heads == model.heads) model.kv_heads = 0;
  if (static_cast<long long>(model.head_dim) * model.heads == model.hidden) model.head_dim = 0;
}

void read_sizes(const YamlMap& map, ModelShape& model) {
  const bool has_base = model.heads > 0;
  const auto size = [&](const char* key, int& value, IntRange range) {
    value =
        value > 0 ? map.integer_or(key, value, range) : map.integer(key, range);  // 0: not known
  };
  size("layers", model.layers, kLayers);
  size("hidden", model.hidden, kWidth);
  size("heads", model.heads, kWidth);
  const int ffn_usual =
      has_base && !map.has("hidden")
          ? model.ffn_hidden
          : static_cast<int>(std::min<long long>(4LL * model.hidden, kTokens.high));
  model.ffn_hidden = map.integer_or("ffn_hidden", ffn_usual, kTokens);
  size("seq", model.seq, kTokens);
  size("vocab", model.vocab, kTokens);
}

void read_kinds(const YamlMap& map, ModelShape& model) {
  model.activation =
      map.choice("activation", enum_choices(kActivationKinds), std::optional(model.activation));
  model.positions =
      map.choice("positions", enum_choices(kPositionEncodings), std::optional(model.positions));
  model.norm = map.choice("norm", enum_choices(kNormKinds), std::optional(model.norm));
  model.linear_biases = map.boolean_or("linear_biases", model.linear_biases);
  model.qkv_biases = map.boolean_or("qkv_biases", model.qkv_biases);
  model.tied_embeddings = map.boolean_or("tied_embeddings", model.tied_embeddings);
  model.rope_theta = map.number_or("rope_theta", model.rope_theta, kRopeTheta);
  model.norm_eps = map.number_or("norm_eps", model.norm_eps, kNormEps);
  if (map.has("rope_theta") && model.positions != PositionEncoding::kRotary)
    map.fail("rope_theta",
             "belongs to rotary positions; add positions: rotary, or leave the key out");
}

enum class Attention { kMultiHead, kGrouped, kLatent };

// As the key says, or else as the sizes that are given, or else as in `model`.
Attention attention_of(const YamlMap& map, const ModelShape& model) {
  Attention usual = model.kv_heads > 0 ? Attention::kGrouped : Attention::kMultiHead;
  if (map.integer_or("kv_heads", 0, {0, kWidth.high}) > 0) usual = Attention::kGrouped;
  if (has_latent_attention(model) || map.has("kv_lora_rank")) usual = Attention::kLatent;
  return map.choice<Attention>(
      "attention",
      {{"mha", Attention::kMultiHead}, {"gqa", Attention::kGrouped}, {"mla", Attention::kLatent}},
      usual);
}

void read_latent(const YamlMap& map, LatentAttention& latent) {
  const bool has_base = latent.kv_rank > 0;
  const auto size = [&](const char* key, int& value) {
    value = has_base ? map.integer_or(key, value, kWidth) : map.integer(key, kWidth);
  };
  latent.query_rank = map.integer_or("q_lora_rank", latent.query_rank, {0, kWidth.high});
  size("kv_lora_rank", latent.kv_rank);
  size("qk_nope_head_dim", latent.plain_dim);
  size("qk_rope_head_dim", latent.rotary_dim);
  size("v_head_dim", latent.value_dim);
}

void read_attention(const YamlMap& map, ModelShape& model) {
  const Attention attention = attention_of(map, model);
  const bool is_latent = attention == Attention::kLatent;
  if (const std::string key = first_of(map, kLatentKeys); !is_latent && !key.empty())
    map.fail(key, "belongs to latent attention; add attention: mla and kv_lora_rank");
  for (const char* key : {"kv_heads", "head_dim"}) {
    if (is_latent && map.integer_or(key, 0, {0, kWidth.high}) != 0)
      map.fail(key, "latent attention has none; leave the key out or use attention: gqa");
  }
  if (!is_latent) model.latent = {};
  if (is_latent) read_latent(map, model.latent);
  model.head_dim = map.integer_or("head_dim", model.head_dim, {0, kWidth.high});
  const bool must_say = attention == Attention::kGrouped && model.kv_heads == 0;
  if (attention == Attention::kMultiHead) model.kv_heads = 0;
  const int kv_heads = must_say ? map.integer("kv_heads", kWidth)
                                : map.integer_or("kv_heads", model.kv_heads, {0, kWidth.high});
  if (attention == Attention::kMultiHead && kv_heads != 0 && kv_heads != model.heads) {
    map.fail("kv_heads", fmt::format("multi-head attention has as many as heads {}, not {}; "
                                     "change attention to gqa or leave the key out",
                                     model.heads, kv_heads));
  }
  model.kv_heads = kv_heads == model.heads ? 0 : kv_heads;
}

// Reads the kind of the model; whether it has experts.
bool read_kind(const YamlMap& map, ModelShape& model) {
  enum class Kind { kGpt, kEncoder, kMoe };
  const std::string key = first_of(map, kExpertKeys);
  const bool has_some = has_experts(model) || !key.empty();
  Kind usual = has_some ? Kind::kMoe : Kind::kGpt;
  if (model.kind == ModelKind::kEncoder) usual = Kind::kEncoder;
  const auto kind = map.choice<Kind>(
      "kind", {{"gpt", Kind::kGpt}, {"encoder", Kind::kEncoder}, {"moe", Kind::kMoe}}, usual);
  model.kind = kind == Kind::kEncoder ? ModelKind::kEncoder : ModelKind::kGpt;
  if (kind == Kind::kGpt && has_some)
    map.fail("kind", "a gpt has no experts; write moe, or leave the experts out");
  return kind == Kind::kMoe || has_some;
}

void read_experts(const YamlMap& map, ModelShape& model) {
  Experts& experts = model.experts;
  if (!has_experts(model)) {
    experts.count = map.integer("experts", kExperts);
    experts.top_k = map.integer("top_k", kExperts);
    experts.ffn_hidden = model.ffn_hidden;
  }
  experts.count = map.integer_or("experts", experts.count, kExperts);
  experts.top_k = map.integer_or("top_k", experts.top_k, kExperts);
  experts.shared = map.integer_or("shared_experts", experts.shared, {0, kExperts.high});
  experts.ffn_hidden = map.integer_or("expert_ffn_hidden", experts.ffn_hidden, kTokens);
  experts.groups = map.integer_or("expert_groups", experts.groups, {0, kExperts.high});
  experts.top_groups = map.integer_or("top_groups", experts.top_groups, {0, kExperts.high});
  experts.dense_layers = map.integer_or("dense_layers", experts.dense_layers, {0, kLayers.high});
  experts.capacity = map.number_or("capacity", experts.capacity, {0, kFactorMax});
  experts.imbalance = map.number_or("imbalance", experts.imbalance, {1, kFactorMax});
  if (experts.top_k > experts.count) {
    map.fail("top_k", fmt::format("top_k {} exceeds experts {}; choose at most {}", experts.top_k,
                                  experts.count, experts.count));
  }
  if (experts.groups > 0 && experts.count % experts.groups != 0) {
    map.fail("expert_groups", fmt::format("expert_groups {} does not divide experts {}; choose a "
                                          "divisor of {}",
                                          experts.groups, experts.count, experts.count));
  }
  if (experts.top_groups > experts.groups || (experts.groups > 0 && experts.top_groups == 0)) {
    map.fail("top_groups", fmt::format("top_groups {} is not between 1 and expert_groups {}; "
                                       "leave both out where tokens may go to any expert",
                                       experts.top_groups, experts.groups));
  }
  if (experts.dense_layers > model.layers) {
    map.fail("dense_layers", fmt::format("dense_layers {} exceeds layers {}; choose at most {}",
                                         experts.dense_layers, model.layers, model.layers));
  }
}

void check_model(const YamlMap& map, const ModelShape& model) {
  const bool needs_divisor = model.head_dim == 0 && !has_latent_attention(model);
  if (needs_divisor && model.hidden % model.heads != 0) {
    map.fail("heads", fmt::format("heads {} does not divide hidden {}; choose a divisor of {}",
                                  model.heads, model.hidden, model.hidden));
  }
  if (model.kv_heads > 0 && model.heads % model.kv_heads != 0) {
    map.fail("kv_heads", fmt::format("kv_heads {} does not divide heads {}; choose a divisor of {}",
                                     model.kv_heads, model.heads, model.heads));
  }
  if (const auto found = find_layer_contradiction(model)) map.fail(found->key, found->problem);
  if (is_too_large(model))
    map.fail("hidden", "this and the other sizes make more than 10^15 parameters; check them");
}

}  // namespace

ModelShape read_model(const YamlMap& map, const ModelLoader& load) {
  map.allow(all_keys());
  std::optional<ModelShape> model = base_model(map, load);
  if (!model) return {};
  loosen(*model);
  read_sizes(map, *model);
  read_kinds(map, *model);
  read_attention(map, *model);
  if (read_kind(map, *model)) read_experts(map, *model);
  read_mixed_layers(map, *model);
  check_model(map, *model);
  return *model;
}

}  // namespace regatta::workload
