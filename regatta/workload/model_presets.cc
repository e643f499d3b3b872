#include "regatta/workload/model_presets.h"

#include <string>
#include <string_view>
#include <vector>

namespace regatta::workload {
namespace {

struct Row {
  const char* name;
  int layers;
  int hidden;
  int heads;
  int seq;
  int vocab;
  const char* source;
};

constexpr const char* kGpt2 = "Radford et al., 2019, table 2; vocabulary padded to 128";
constexpr const char* kGpt3 = "Brown et al., 2020, table 2.1; vocabulary padded to 51200";
constexpr const char* kMegatron = "Narayanan et al., SC'21, table 1";

// 50257 words divide by no useful tp, so they are padded as Megatron-LM does. All have
// ffn_hidden = 4 hidden and the output layer tied to the token table.
constexpr Row kRows[] = {
    {"gpt2-small", 12, 768, 12, 1024, 50304, kGpt2},
    {"gpt2-medium", 24, 1024, 16, 1024, 50304, kGpt2},
    {"gpt2-large", 36, 1280, 20, 1024, 50304, kGpt2},
    {"gpt2-xl", 48, 1600, 25, 1024, 50304, kGpt2},
    {"gpt3-2.7b", 32, 2560, 32, 2048, 51200, kGpt3},
    {"gpt3-6.7b", 32, 4096, 32, 2048, 51200, kGpt3},
    // The paper prints a hidden size of 5140; 40 heads of 128 make 5120.
    {"gpt3-13b", 40, 5120, 40, 2048, 51200, kGpt3},
    {"gpt3-175b", 96, 12288, 96, 2048, 51200, kGpt3},
    {"megatron-1.7b", 24, 2304, 24, 2048, 51200, kMegatron},
    {"megatron-3.6b", 30, 3072, 32, 2048, 51200, kMegatron},
    {"megatron-7.5b", 36, 4096, 32, 2048, 51200, kMegatron},
    {"megatron-18.4b", 40, 6144, 48, 2048, 51200, kMegatron},
    {"megatron-39.1b", 48, 8192, 64, 2048, 51200, kMegatron},
    {"megatron-76.1b", 60, 10240, 80, 2048, 51200, kMegatron},
    {"megatron-145.6b", 80, 12288, 96, 2048, 51200, kMegatron},
    {"megatron-310.1b", 96, 16384, 128, 2048, 51200, kMegatron},
    {"megatron-529.6b", 105, 20480, 128, 2048, 51200, kMegatron},
    {"megatron-1008b", 128, 25600, 160, 2048, 51200, kMegatron},
};

ModelPreset preset_of(const Row& row) {
  ModelPreset preset;
  preset.model = {.kind = ModelKind::kGpt,
                  .preset = row.name,
                  .layers = row.layers,
                  .hidden = row.hidden,
                  .heads = row.heads,
                  .ffn_hidden = 4 * row.hidden,
                  .seq = row.seq,
                  .vocab = row.vocab,
                  .activation = Activation::kGelu,
                  .tied_embeddings = true};
  preset.source = row.source;
  return preset;
}

const std::vector<ModelPreset>& presets() {
  static const std::vector<ModelPreset> all = [] {
    std::vector<ModelPreset> made;
    for (const Row& row : kRows)
      made.push_back(preset_of(row));
    return made;
  }();
  return all;
}

}  // namespace

const ModelPreset* find_model_preset(std::string_view name) {
  for (const ModelPreset& preset : presets()) {
    if (preset.model.preset == name) return &preset;
  }
  return nullptr;
}

std::vector<std::string> model_preset_names() {
  std::vector<std::string> names;
  for (const ModelPreset& preset : presets())
    names.push_back(preset.model.preset);
  return names;
}

}  // namespace regatta::workload
