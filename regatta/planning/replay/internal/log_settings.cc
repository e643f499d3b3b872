#include "regatta/planning/replay/internal/log_settings.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <map>
#include <optional>
#include <string_view>

#include "regatta/base/core/text.h"
#include "regatta/planning/replay/internal/log_lines.h"

namespace regatta::replay {
namespace {

using workload::Precision;
using workload::Recompute;

constexpr std::size_t kLongestSetting = 400;  // of a line in bytes; longer ones list other things
constexpr double kLargest = 1e8;

std::optional<int> whole(double number) {
  if (number < 1 || number > kLargest || number != std::floor(number)) return std::nullopt;
  return static_cast<int>(number);
}

// The settings of a log by their key; the first of each.
class Settings {
 public:
  explicit Settings(const std::vector<std::string>& lines) {
    for (const std::string& line : lines) {
      if (line.size() > kLongestSetting) continue;
      const auto setting = setting_in(line);
      if (setting) values_.emplace(setting->first, setting->second);
    }
  }

  std::string text(std::string_view key) const {
    const auto found = values_.find(key);
    return found == values_.end() ? std::string{} : found->second;
  }
  // The first of the keys that has one.
  template <std::size_t kCount>
  std::optional<int> number(const std::array<std::string_view, kCount>& keys) const {
    for (const std::string_view key : keys) {
      const auto value = parse_number<double>(text(key));
      if (value && whole(*value)) return whole(*value);
    }
    return std::nullopt;
  }
  std::optional<int> number(std::string_view key) const { return number(std::array{key}); }
  bool is_on(std::string_view key) const {
    const std::string value = text(key);
    return value == "True" || value == "true";
  }
  bool has(std::string_view key) const { return !text(key).empty(); }

 private:
  std::map<std::string, std::string, std::less<>> values_;
};

bool is_given(const std::string& value) {
  return !value.empty() && value != "None" && value != "null" && value != "False" &&
         value != "false" && value != "{";
}

std::optional<Precision> precision_in(const Settings& settings) {
  if (is_given(settings.text("fp4"))) return Precision::kNvfp4;
  if (is_given(settings.text("fp8")))
    return settings.text("fp8_recipe") == "mxfp8" ? Precision::kMxfp8 : Precision::kFp8;
  if (settings.is_on("bf16") || settings.is_on("bfloat16_enabled")) return Precision::kBf16;
  if (settings.is_on("fp16") || settings.is_on("fp16_enabled")) return Precision::kFp16;
  const std::string precision = settings.text("precision");  // of Lightning: "bf16-mixed"
  if (precision.starts_with("bf16")) return Precision::kBf16;
  if (precision.starts_with("16")) return Precision::kFp16;
  return std::nullopt;
}

std::optional<Recompute> recompute_in(const Settings& settings) {
  for (const char* const key : {"recompute_granularity", "activations_checkpoint_granularity"}) {
    if (!settings.has(key)) continue;
    const std::string value = settings.text(key);
    if (value == "full") return Recompute::kFull;
    if (value == "selective") return Recompute::kSelective;
    return Recompute::kNone;
  }
  return std::nullopt;
}

std::optional<int> zero_in(const Settings& settings) {
  const std::string stage = settings.text("zero_optimization_stage");
  if (stage.size() == 1 && stage[0] >= '0' && stage[0] <= '3') return stage[0] - '0';
  const std::string shared = settings.text("data_parallel_sharding_strategy");
  if (shared == "optim_grads_params") return 3;
  if (shared == "optim_grads") return 2;
  if (shared == "optim" || settings.is_on("use_distributed_optimizer")) return 1;
  if (settings.has("use_distributed_optimizer")) return 0;
  return std::nullopt;
}

// Devices: Megatron-LM and DeepSpeed print the world size, the latter that of its replicas; the
// trainer of NeMo has servers and devices of a server.
std::optional<int> devices_in(const Settings& settings) {
  if (const auto world = settings.number("world_size")) return world;
  const auto servers = settings.number("num_nodes");
  const auto each = settings.number("devices");
  if (!servers || !each) return std::nullopt;
  return whole(static_cast<double>(*servers) * *each);
}

LoggedSettings printed(const Settings& settings) {
  LoggedSettings logged;
  logged.devices = devices_in(settings);
  logged.tp = settings.number("tensor_model_parallel_size");
  logged.pp = settings.number("pipeline_model_parallel_size");
  logged.cp = settings.number("context_parallel_size");
  logged.ep = settings.number("expert_model_parallel_size");
  logged.etp = settings.number("expert_tensor_parallel_size");
  logged.virtual_stages = settings.number("virtual_pipeline_model_parallel_size");
  logged.micro_batch = settings.number(
      std::array<std::string_view, 2>{"micro_batch_size", "train_micro_batch_size_per_gpu"});
  logged.global_batch =
      settings.number(std::array<std::string_view, 2>{"global_batch_size", "train_batch_size"});
  logged.seq = settings.number(
      std::array<std::string_view, 3>{"seq_length", "encoder_seq_length", "seq_len"});
  logged.layers = settings.number("num_layers");
  logged.hidden = settings.number("hidden_size");
  logged.heads = settings.number("num_attention_heads");
  logged.ffn_hidden = settings.number("ffn_hidden_size");
  logged.vocab =
      settings.number(std::array<std::string_view, 2>{"padded_vocab_size", "vocab_size"});
  logged.experts =
      settings.number(std::array<std::string_view, 2>{"num_experts", "num_moe_experts"});
  if (settings.has("sequence_parallel"))
    logged.sequence_parallel = settings.is_on("sequence_parallel");
  logged.zero = zero_in(settings);
  logged.recompute = recompute_in(settings);
  logged.precision = precision_in(settings);
  const auto part = settings.number("num_layers_per_virtual_pipeline_stage");
  if (part && logged.layers && logged.pp) {
    const double parts = static_cast<double>(*logged.layers) / *logged.pp / *part;
    if (parts > 1) logged.virtual_stages = whole(parts);
  }
  return logged;
}

void set(std::optional<int>& value, std::string_view line, std::string_view marker) {
  const auto number = number_after(line, marker);
  if (number && whole(*number)) value = whole(*number);
}

// "Building device mesh with parallelism: pp=1, dp_replicate=1, dp_shard=8, cp=1, tp=1, ep=1"
void read_mesh(std::string_view line, LoggedSettings& logged) {
  std::optional<int> replicate;
  std::optional<int> shard;
  set(logged.pp, line, " pp=");
  set(logged.cp, line, " cp=");
  set(logged.tp, line, " tp=");
  set(logged.ep, line, " ep=");
  set(logged.etp, line, " etp=");
  set(replicate, line, "dp_replicate=");
  set(shard, line, "dp_shard=");
  const double world = static_cast<double>(logged.pp.value_or(1)) * logged.cp.value_or(1) *
                       logged.tp.value_or(1) * replicate.value_or(1) * shard.value_or(1);
  logged.devices = whole(world);
  const double shared = static_cast<double>(shard.value_or(1)) * logged.cp.value_or(1);
  logged.zero = shared > 1 ? 3 : 0;
  if (shared > 1 && replicate.value_or(1) > 1) logged.shard_ranks = shard;
  logged.sequence_parallel = logged.tp.value_or(1) > 1;
}

// The lines of torchtitan; whether there was one.
bool read_titan_line(std::string_view line, LoggedSettings& logged) {
  const auto says = [&](std::string_view words) { return line.find(words) != line.npos; };
  if (says("Building device mesh with parallelism:")) {
    read_mesh(line, logged);
    return true;
  }
  if (says("Trainer is initialized with local batch size")) {
    set(logged.micro_batch, line, "local batch size");
    set(logged.global_batch, line, "global batch size");
    set(logged.seq, line, "sequence length");
    return true;
  }
  if (says(" total parameters") && says("Model ") && says("size: ")) {
    logged.parameters = number_after(line, "size: ");
    return true;
  }
  if (says("activation checkpointing to the model")) {
    const bool is_full = says("Applied full") || says("FullAC");
    logged.recompute = is_full ? Recompute::kFull : Recompute::kSelective;
    return true;
  }
  if (says("Float8") && says("training active")) logged.precision = Precision::kFp8;
  if (says("MXFP8") && says("training active")) logged.precision = Precision::kMxfp8;
  return false;
}

// torchtitan trains in bf16 unless it says otherwise, and cuts a replica's batch into micro-batches
// of one sample for a pipeline (pipeline_parallel_microbatch_size).
void complete_titan(const Settings& settings, LoggedSettings& logged) {
  if (!logged.precision) logged.precision = Precision::kBf16;
  if (!logged.recompute) logged.recompute = Recompute::kNone;
  if (logged.pp.value_or(1) > 1)
    logged.micro_batch = settings.number("pipeline_parallel_microbatch_size").value_or(1);
}

}  // namespace

LoggedSettings logged_settings(const std::vector<std::string>& lines) {
  const Settings settings(lines);
  LoggedSettings logged = printed(settings);
  bool is_titan = false;
  for (const std::string& line : lines)
    is_titan = (line.size() <= kLongestSetting && read_titan_line(line, logged)) || is_titan;
  if (is_titan) complete_titan(settings, logged);
  return logged;
}

}  // namespace regatta::replay
