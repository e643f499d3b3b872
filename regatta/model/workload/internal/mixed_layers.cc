#include "regatta/model/workload/internal/mixed_layers.h"

#include <algorithm>
#include <string_view>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace regatta::workload {
namespace {

constexpr int kMost = 10'000'000;

// Calls `visit` for every key with its value in `model`; those that are numbers are at least `low`.
template <typename Model, typename Visit>
void visit_keys(Model& model, const Visit& visit) {
  visit("qk_norms", model.qk_norms);
  visit("attention_sinks", model.attention_sinks);
  visit("window", model.window.tokens, 0);
  visit("window_chunked", model.window.is_chunked);
  visit("full_attention_every", model.window.full_every, 0);
  visit("expert_every", model.experts.every, 1);
  visit("expert_latent", model.experts.latent, 0);
  visit("layer_pattern", model.layer_pattern);
  visit("mamba_num_heads", model.state_space.heads, 0);
  visit("mamba_head_dim", model.state_space.head_dim, 0);
  visit("ssm_state_size", model.state_space.state, 0);
  visit("mamba_groups", model.state_space.groups, 1);
  visit("conv_kernel", model.state_space.conv, 1);
  visit("mamba_chunk_size", model.state_space.chunk, 1);
  visit("mtp_layers", model.mtp_layers, 0);
  visit("packed", model.packed, 0);
}

struct YamlReading {
  const YamlMap& map;
  void operator()(const char* key, int& value, int low) const {
    value = map.integer_or(key, value, {low, kMost});
  }
  void operator()(const char* key, bool& value) const { value = map.boolean_or(key, value); }
  void operator()(const char* key, std::string& value) const { value = map.text(key, value); }
};

struct JsonReading {
  const JsonReader& reader;
  void operator()(const char* key, int& value, int low) const {
    reader.read_if(key, value, IntRange{low, kMost});
  }
  void operator()(const char* key, bool& value) const { reader.read_if(key, value); }
  void operator()(const char* key, std::string& value) const { reader.read_if(key, value); }
};

std::optional<ModelContradiction> find_state_space_contradiction(const ModelShape& model) {
  const StateSpace& space = model.state_space;
  const bool is_used = model.layer_pattern.find('M') != std::string::npos;
  if (!is_used && space.heads > 0)
    return ModelContradiction{"mamba_num_heads",
                              "no layer is a state space; write an M for each "
                              "into layer_pattern, or leave the key out"};
  if (is_used && std::min({space.heads, space.head_dim, space.state}) < 1)
    return ModelContradiction{"layer_pattern",
                              "M needs mamba_num_heads, mamba_head_dim and "
                              "ssm_state_size; add them"};
  if (is_used && space.heads % space.groups != 0)
    return ModelContradiction{"mamba_groups",
                              fmt::format("{} does not divide mamba_num_heads {}; choose a divisor",
                                          space.groups, space.heads)};
  return std::nullopt;
}

std::optional<ModelContradiction> find_pattern_contradiction(const ModelShape& model) {
  const std::string& pattern = model.layer_pattern;
  if (const std::size_t wrong = pattern.find_first_not_of("M*-E"); wrong != std::string::npos)
    return ModelContradiction{
        "layer_pattern",
        fmt::format("layer {} is '{}'; write M for a state space, * for attention, "
                    "- for an MLP, E for experts",
                    wrong, pattern[wrong])};
  if (static_cast<int>(pattern.size()) != model.layers)
    return ModelContradiction{
        "layer_pattern", fmt::format("it has {} letters, the model {} layers; write one letter "
                                     "for each layer",
                                     pattern.size(), model.layers)};
  const bool has_letter = pattern.find('E') != std::string::npos;
  if (has_letter != has_experts(model))
    return ModelContradiction{
        "layer_pattern",
        has_letter ? "E needs experts; add experts and top_k"
                   : "no layer has the experts; write an E for each, or leave experts out"};
  if (model.window.tokens > 0 || model.experts.every > 1 || model.experts.dense_layers > 0)
    return ModelContradiction{"layer_pattern",
                              "it says what every layer is; leave window, "
                              "expert_every and dense_layers out"};
  return std::nullopt;
}

}  // namespace

std::vector<std::string> mixed_layer_keys() {
  std::vector<std::string> keys;
  ModelShape model;
  visit_keys(model, [&](const char* key, const auto&...) { keys.emplace_back(key); });
  return keys;
}

void read_mixed_layers(const YamlMap& map, ModelShape& model) {
  visit_keys(model, YamlReading{map});
}

void read_mixed_layers(const JsonReader& reader, ModelShape& model) {
  visit_keys(model, JsonReading{reader});
}

void add_mixed_layers(nlohmann::json& object, const ModelShape& model) {
  nlohmann::json usual;
  const ModelShape equal;
  visit_keys(equal, [&](const char* key, const auto& value, auto...) { usual[key] = value; });
  visit_keys(model, [&](const char* key, const auto& value, auto...) {
    if (usual[key] != value) object[key] = value;
  });
}

std::optional<ModelContradiction> find_layer_contradiction(const ModelShape& model) {
  const AttentionWindow& window = model.window;
  if (window.tokens == 0 && (window.is_chunked || window.full_every > 0))
    return ModelContradiction{window.is_chunked ? "window_chunked" : "full_attention_every",
                              "belongs to a window; add window, or leave the key out"};
  if (window.tokens > 0 && model.kind == ModelKind::kEncoder)
    return ModelContradiction{"window", "an encoder has none here; leave the key out"};
  if (!has_experts(model) && (model.experts.every > 1 || model.experts.latent > 0))
    return ModelContradiction{model.experts.every > 1 ? "expert_every" : "expert_latent",
                              "belongs to experts; add experts and top_k, or leave the key out"};
  if (model.packed > model.seq)
    return ModelContradiction{
        "packed", fmt::format("samples of {} tokens do not fit into seq {}; choose at most that",
                              model.packed, model.seq)};
  if (!model.layer_pattern.empty())
    if (auto found = find_pattern_contradiction(model)) return found;
  return find_state_space_contradiction(model);
}

}  // namespace regatta::workload
