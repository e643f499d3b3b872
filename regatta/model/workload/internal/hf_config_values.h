// workload/internal/hf_config_values.h: the values of a Hugging Face config.json, and the types of
// models whose layers differ.
#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "regatta/base/core/json.h"
#include "regatta/model/workload/model.h"

namespace regatta::workload {

// Reads the values of a flat object of which each has one of several keys, or null.
class HfConfigValues {
 public:
  using Keys = std::initializer_list<const char*>;

  explicit HfConfigValues(JsonReader root) : root_(std::move(root)) {}

  int size(Keys keys) const {  // at least 1
    if (const auto value = find(keys)) return value->as<int>(IntRange{1, kSizeMax});
    fail(*keys.begin(), "missing; add it as the model has it");
    return 1;
  }
  int size_or(Keys keys, int otherwise) const {
    const auto value = find(keys);
    return value ? value->as<int>(IntRange{0, kSizeMax}) : otherwise;
  }
  double number_or(Keys keys, double otherwise) const {
    const auto value = find(keys);
    return value ? value->as<double>(kPositive) : otherwise;
  }
  bool boolean_or(const char* key, bool otherwise) const {
    root_.read_if(key, otherwise);
    return otherwise;
  }
  std::string text_or(const char* key, std::string otherwise) const {
    root_.read_if(key, otherwise);
    return otherwise;
  }
  std::vector<std::string> texts(const char* key) const {
    std::vector<std::string> values;
    root_.read_if(key, values);
    return values;
  }
  void fail(const std::string& key, const std::string& problem) const {
    root_.fail(fmt::format("{}: {}", key, problem));
  }

 private:
  static constexpr long long kSizeMax = 10'000'000;

  std::optional<JsonReader> find(Keys keys) const {
    for (const char* key : keys)
      if (root_.has(key)) return root_.at(key);
    return std::nullopt;
  }

  JsonReader root_;
};

// Layers, width, heads and vocabulary.
ModelShape read_hf_sizes(const HfConfigValues& values);
// The experts that the values name, of a model that has some.
void read_hf_experts(const HfConfigValues& values, ModelShape& model);

// Types whose layers differ; `model` gets what Llama's keys say first, but for nemotron_h.
void read_hf_gpt_oss(const HfConfigValues& values, ModelShape& model);
void read_hf_llama4(const HfConfigValues& values, ModelShape& model);
ModelShape read_hf_nemotron_h(const HfConfigValues& values);

}  // namespace regatta::workload
