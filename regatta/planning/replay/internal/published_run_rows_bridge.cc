// Rows of NVIDIA Megatron-Bridge: docs/performance-summary.md and its archive, releases 25.09 to
// 26.08 (github.com/NVIDIA-NeMo/Megatron-Bridge, commit 067f987df03b).
#include <algorithm>
#include <array>
#include <cctype>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "regatta/model/topo/presets.h"
#include "regatta/model/workload/model.h"
#include "regatta/planning/replay/internal/published_run_rows.h"

namespace regatta::replay {
namespace {

struct Name {
  std::string_view published;
  const char* preset;
};

constexpr std::array kModels = {
    Name{"Qwen3_30B_a3B", "qwen3-30b-a3b"}, Name{"LLAMA3.1_405B", "llama3-405b"},
    Name{"LLAMA3_70B", "llama3-70b"},       Name{"LLAMA3_8B", "llama3-8b"},
    Name{"DeepSeekV3", "deepseek-v3"},      Name{"Kimi_K2", "kimi-k2"},
    Name{"GPT OSS 120B", "gpt-oss-120b"},   Name{"Nemotron_3_Super", "nemotron3-super"}};

constexpr std::array kSystems = {Name{"DGX-H100", "dgx-h100"}, Name{"DGX-B200", "dgx-b200"},
                                 Name{"DGX-B300", "b300-8"}, Name{"DGX-GB200", "gb200-nvl72"},
                                 Name{"DGX-GB300", "gb300-nvl72"}};

constexpr std::array<std::string_view, 3> kKinds = {"Pre-Training", "SFT", "LoRA"};

// Shares that these rows decide may be fitted to these models; every other model is held out.
constexpr std::array<std::string_view, 2> kFittedModels = {"Qwen3_30B_a3B", "LLAMA3.1_405B"};

template <typename Names>
const char* preset_of(const Names& names, const std::string& published) {
  const auto found = std::find_if(names.begin(), names.end(),
                                  [&](const Name& one) { return one.published == published; });
  return found == names.end() ? nullptr : found->preset;
}

// "FP8", of current scaling "FP8-CS"; "MXFP8" or "FP8-MX".
std::optional<workload::Precision> bridge_precision(std::string published) {
  if (published == "FP8-CS") published = "FP8";
  if (published == "FP8-MX") published = "MXFP8";
  std::ranges::transform(published, published.begin(),
                         [](unsigned char letter) { return std::tolower(letter); });
  return workload::precision_named(published);
}

// As many layers on each part of the model as fit evenly, and fewer on the last, beside the modules
// that predict and the loss; where even that is too many, fewer on the first (the layouts of
// src/megatron/bridge/recipes, deepseek_v3.py and kimi_k2.py, and "Et|(tt|)*30mL" of DeepSeek-V3 on
// H100).
std::vector<int> with_lighter_last(int layers, int parts) {
  const int most = (layers + parts - 1) / parts;
  std::vector<int> all(static_cast<std::size_t>(parts), most);
  all.back() = std::max(0, layers - most * (parts - 1));
  all.front() = layers - all.back() - most * (parts - 2);
  return all;
}

workload::Strategy bridge_strategy(RowReader& reader, const std::string& model, int gpus,
                                   int layers) {
  workload::Strategy strategy{
      .tp = reader.whole("tp"), .pp = reader.whole("pp"), .micro_batch = reader.whole("mbs")};
  strategy.cp = reader.whole_or("cp", 1);
  strategy.ep = reader.whole_or("ep", 1);
  strategy.dp = gpus / (strategy.tp * strategy.pp * strategy.cp);
  strategy.zero = reader.has("fsdp") ? 3 : 1;
  strategy.sequence_parallel = strategy.tp > 1;
  interleave(strategy, reader.whole_or("vp", 1));
  // The embedding and the output layer are parts of their own beside 126 layers in 128 parts.
  const int parts = strategy.pp * strategy.virtual_stages;
  const bool is_lighter_last = model == "DeepSeekV3" || model == "Kimi_K2" || parts > layers;
  if (strategy.pp > 1 && is_lighter_last) strategy.stage_layers = with_lighter_last(layers, parts);
  return strategy;
}

// Since 26.06 graphs launch whole steps of experts where the recipes for MXFP8 on NVL72 say so
// (scripts/performance/configs: "full_iteration"): not those of Nemotron, nor that of Kimi K2 with
// two samples.
bool has_whole_graphs(const RowReader& reader, const std::string& model, int micro_batch) {
  if (reader.text("release") < "26.06" || !reader.text("system").starts_with("DGX-GB"))
    return false;
  return model != "Nemotron_3_Super" && (model != "Kimi_K2" || micro_batch == 1);
}

// The same recipes name what is recomputed (recompute_modules). Nothing: not for that release.
std::optional<workload::Recompute> recipe_recompute(const std::string& model, bool has_graphs,
                                                    workload::Precision precision) {
  using workload::Recompute;
  if (has_graphs || model == "Nemotron_3_Super") return Recompute::kNone;
  // Norms and activation functions.
  if (model == "GPT OSS 120B")
    return precision == workload::Precision::kBf16 ? Recompute::kPointwise : Recompute::kNone;
  // Heads from short vectors; in bf16 activation functions.
  if (model == "DeepSeekV3" || model == "Kimi_K2") return Recompute::kPointwise;
  return std::nullopt;
}

// The recipes train the module of DeepSeek-V3 (src/megatron/bridge/recipes/deepseek), and that of
// Nemotron 3 Super twice over (src/megatron/bridge/recipes/nemotronh/h100/nemotron_3_super.py:
// mtp_num_layers).
int mtp_layers(const std::string& model, const std::string& note) {
  if (model == "Nemotron_3_Super") return 2;
  return model == "DeepSeekV3" && note != "w/o MTP" ? 1 : 0;
}

// As the recipes of the same commit train them (src/megatron/bridge/recipes): SFT and LoRA on SQuAD
// packed to `seq` tokens; LoRA beside queries, keys and values alone (llama3_perf.py).
void set_tuning(workload::ModelShape& model, const std::string& kind) {
  if (kind == "Pre-Training") return;
  model.packed = kSquadTokens;
  if (kind == "LoRA") model.adapters = {.rank = 16, .qkv = true};
}

// Why the planner cannot plan the row; "": it can.
std::string unplannable(RowReader& reader) {
  const std::string kind = reader.text("kind");
  if (std::find(kKinds.begin(), kKinds.end(), kind) == kKinds.end())
    return fmt::format("of {} (no such training)", kind);
  const auto system = reader.text("system");
  const char* const server = preset_of(kSystems, system);
  if (server == nullptr || topo::find_server_preset(server) == nullptr)
    return fmt::format("on {} (no such server preset)", system);
  const auto model = reader.text("model");
  const char* const shape = preset_of(kModels, model);
  if (shape == nullptr || workload::find_model_preset(shape) == nullptr)
    return fmt::format("of {} (no such model preset)", model);
  const auto precision = reader.text("precision");
  if (!bridge_precision(precision)) return fmt::format("in {} (no such precision)", precision);
  return "";
}

}  // namespace

std::vector<PublishedRun> bridge_row(RowReader& reader) {
  if (std::string reason = unplannable(reader); !reason.empty()) {
    reader.leave_out(std::move(reason));
    return {};
  }
  PublishedRun run;
  const std::string model = reader.text("model");
  run.model = workload::find_model_preset(preset_of(kModels, model))->model;
  run.model.seq = reader.whole("seq");
  run.model.mtp_layers = mtp_layers(model, reader.text("note"));
  // Tokens beyond the mean load are dropped, and fewer are padded to it.
  if (reader.text("note") == "tokendrop") run.model.experts.capacity = 1;
  set_tuning(run.model, reader.text("kind"));
  run.server = server_of(preset_of(kSystems, reader.text("system")));
  const int gpus = reader.whole("gpus");
  run.strategy = bridge_strategy(reader, model, gpus, run.model.layers);
  // Its recipes of fine-tuning reduce gradients after the last backward (overlap_grad_reduce).
  run.strategy.overlap = !is_tuned(run.model);
  // Its recipes leave experts whole: expert_tensor_parallel_size is 1 (recipes/*/*.py).
  if (has_experts(run.model)) run.strategy.etp = 1;
  run.global_batch = reader.whole("gbs");
  run.precision = *bridge_precision(reader.text("precision"));
  run.stack = "megatron-bridge-dense";
  if (has_experts(run.model)) {
    const bool has_graphs = has_whole_graphs(reader, model, run.strategy.micro_batch);
    const bool is_nccl = run.model.experts.capacity > 0 ||
                         (model == "GPT OSS 120B" && run.precision == workload::Precision::kBf16);
    run.stack = has_graphs ? "megatron-bridge-graphs"
                : is_nccl  ? "megatron-bridge-alltoall"
                           : "megatron-bridge";
    const auto recompute = recipe_recompute(model, has_graphs, run.precision);
    run.is_recompute_open = !recompute;
    run.strategy.recompute = recompute.value_or(workload::Recompute::kNone);
  }
  const double tokens = static_cast<double>(run.global_batch) * run.model.seq;
  run.measured = tokens / (reader.positive("tokens_s_gpu") * gpus);
  run.is_calibration =
      std::find(kFittedModels.begin(), kFittedModels.end(), model) != kFittedModels.end();
  return {run};
}

}  // namespace regatta::replay
