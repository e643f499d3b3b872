#include "regatta/workload/job_yaml.h"

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "regatta/core/text.h"
#include "regatta/core/yaml_map.h"
#include "regatta/workload/model_presets.h"

namespace regatta::workload {
namespace {

// Keep every count of parameters and operations within 63 bits.
constexpr IntRange kLayers{1, 10'000};
constexpr IntRange kWidth{1, 1'000'000};
constexpr IntRange kTokens{1, 10'000'000};
constexpr int kByteVocab = 256;
constexpr std::size_t kLongestName = 64;

// `key` may only say a word of `accepted`; those of `later` are named as not yet available.
void accept_only(const YamlMap& map, const char* key, const std::vector<std::string>& accepted,
                 const std::vector<std::string>& later) {
  if (!map.has(key)) return;
  const std::string word = map.text(key);
  if (std::find(accepted.begin(), accepted.end(), word) != accepted.end()) return;
  if (std::find(later.begin(), later.end(), word) != later.end()) {
    map.refuse(key, fmt::format("'{}' is not yet available; use {} or leave the key out", word,
                                join(accepted, " or ")));
    return;
  }
  std::vector<std::string> words = accepted;
  words.insert(words.end(), later.begin(), later.end());
  const std::string nearest = nearest_word(word, words);
  map.fail(key, fmt::format("'{}' is not one of {}{}", word, join(words, ", "),
                            nearest.empty() ? "" : fmt::format("; did you mean '{}'?", nearest)));
}

// An integer key of later work whose only value so far is `accepted`.
void accept_only_number(const YamlMap& map, const char* key, int accepted, IntRange range) {
  if (!map.has(key) || map.integer(key, range) == accepted) return;
  map.refuse(key, fmt::format("'{}' is not yet available; use {} or leave the key out",
                              map.text(key), accepted));
}

void read_shape(const YamlMap& map, ModelShape& model, bool has_preset) {
  const auto size = [&](const char* key, int& value, IntRange range) {
    value = has_preset ? map.integer_or(key, value, range) : map.integer(key, range);
  };
  size("layers", model.layers, kLayers);
  size("hidden", model.hidden, kWidth);
  size("heads", model.heads, kWidth);
  const int ffn_usual =
      has_preset && !map.has("hidden")
          ? model.ffn_hidden
          : static_cast<int>(std::min<long long>(4LL * model.hidden, kTokens.high));
  model.ffn_hidden = map.integer_or("ffn_hidden", ffn_usual, kTokens);
  size("seq", model.seq, kTokens);
  size("vocab", model.vocab, kTokens);
  model.tied_embeddings = map.boolean_or("tied_embeddings", model.tied_embeddings);
}

void check_shape(const YamlMap& map, const ModelShape& model) {
  if (model.hidden % model.heads != 0) {
    map.fail("heads", fmt::format("heads {} does not divide hidden {}; choose a divisor of {}",
                                  model.heads, model.hidden, model.hidden));
  }
  if (model.vocab < kByteVocab) {
    map.fail("vocab", fmt::format("'{}' is out of range; the tokens are bytes, so write at least "
                                  "{}",
                                  model.vocab, kByteVocab));
  }
  const int heads = map.integer_or("kv_heads", model.heads, kWidth);
  if (heads != model.heads) {
    map.refuse("kv_heads", fmt::format("'{}' is not yet available; use heads {} or leave the key "
                                       "out",
                                       heads, model.heads));
  }
  const int dim = map.integer_or("head_dim", model.hidden / model.heads, kWidth);
  if (dim != model.hidden / model.heads) {
    map.refuse("head_dim", fmt::format("'{}' is not yet available; use hidden / heads = {} or "
                                       "leave the key out",
                                       dim, model.hidden / model.heads));
  }
}

// Those that a job may name.
std::vector<std::string> preset_names() {
  std::vector<std::string> names = model_preset_names();
  std::erase_if(
      names, [](const std::string& name) { return !is_plain_gpt(find_model_preset(name)->model); });
  return names;
}

ModelShape read_model(const YamlMap& map) {
  map.allow({"kind", "preset", "from", "layers", "hidden", "heads", "kv_heads", "head_dim",
             "ffn_hidden", "activation", "vocab", "seq", "tied_embeddings", "attention", "experts",
             "shared_experts", "top_k", "expert_ffn_hidden", "dense_layers"});
  ModelShape model;
  accept_only(map, "kind", {"gpt"}, {"moe", "encoder"});
  accept_only(map, "activation", {"gelu"}, {"swiglu"});
  accept_only(map, "attention", {"mha"}, {"gqa", "mla"});
  if (map.has("from"))
    map.refuse("from", "reading a model file is not yet available; write the sizes out");
  for (const char* key :
       {"experts", "shared_experts", "top_k", "expert_ffn_hidden", "dense_layers"}) {
    if (map.has(key)) map.refuse(key, "experts are not yet available; leave the key out");
  }
  const bool has_preset = map.has("preset");
  if (has_preset) {
    const std::string name = map.text("preset");
    const ModelPreset* preset = find_model_preset(name);
    if (preset == nullptr) {
      map.fail("preset", fmt::format("no model is called '{}'; choose one of {}", name,
                                     join(preset_names(), ", ")));
      return model;
    }
    model = preset->model;
    if (!is_plain_gpt(model)) {
      map.refuse("preset",
                 fmt::format("'{}' is not yet available to jobs; choose a GPT-2, GPT-3 or "
                             "Megatron model",
                             name));
    }
  }
  read_shape(map, model, has_preset);
  check_shape(map, model);
  return model;
}

std::optional<int> optional_degree(const YamlMap& map, const char* key) {
  if (!map.has(key) || (map.is_scalar(key) && map.text(key) == "auto")) return std::nullopt;
  return map.integer(key, {1, 1'000'000});
}

StrategyRequest read_strategy(const YamlMap& map) {
  map.allow({"tp", "pp", "dp", "cp", "ep", "micro_batch", "schedule", "virtual_stages",
             "sequence_parallel", "zero", "recompute", "compression", "overlap"});
  StrategyRequest request;
  request.tp = optional_degree(map, "tp");
  request.pp = optional_degree(map, "pp");
  request.dp = optional_degree(map, "dp");
  request.micro_batch = optional_degree(map, "micro_batch");
  accept_only_number(map, "cp", 1, {1, 1'000'000});
  accept_only_number(map, "ep", 1, {1, 1'000'000});
  accept_only_number(map, "virtual_stages", 1, {1, 1'000'000});
  accept_only_number(map, "zero", 0, {0, 3});
  accept_only(map, "schedule", {"1f1b"}, {"interleaved", "zb-h1", "zb-v", "dualpipe"});
  if (map.has("compression")) {
    std::vector<std::string> kinds;
    kinds.reserve(kCompressions.size());
    for (const Compression kind : kCompressions)
      kinds.push_back(to_string(kind));
    accept_only(map, "compression", kinds, {});
    request.compression = compression_named(map.text("compression"));
  }
  if (map.boolean_or("sequence_parallel", false))
    map.refuse("sequence_parallel", "'true' is not yet available; use false or leave the key out");
  const bool any_recompute = map.is_scalar("recompute") && map.text("recompute") == "auto";
  if (map.has("recompute") && !any_recompute) {
    accept_only(map, "recompute", {"none", "full"}, {"selective"});
    request.recompute = map.text("recompute") == "full" ? Recompute::kFull : Recompute::kNone;
  }
  if (map.has("overlap")) request.overlap = map.boolean_or("overlap", true);
  return request;
}

// The first divisibility that the given degrees alone break; the search checks the rest.
void check_strategy(const YamlMap& map, const Job& job) {
  const ModelShape& model = job.model;
  const StrategyRequest& request = job.strategy;
  const auto divides = [&](const char* key, int a, const char* name, int b) {
    if (b % a == 0) return;
    map.fail(key, fmt::format("{} {} does not divide {} {}; choose a divisor of {}", key, a, name,
                              b, b));
  };
  if (request.tp) {
    divides("tp", *request.tp, "heads", model.heads);
    divides("tp", *request.tp, "ffn_hidden", model.ffn_hidden);
    divides("tp", *request.tp, "vocab", model.vocab);
  }
  if (request.pp && *request.pp > model.layers) {
    map.fail("pp", fmt::format("pp {} exceeds layers {}; a stage needs a layer", *request.pp,
                               model.layers));
  }
  if (request.dp) divides("dp", *request.dp, "global_batch", job.global_batch);
  if (request.micro_batch)
    divides("micro_batch", *request.micro_batch, "global_batch", job.global_batch);
}

Optimizer read_optimizer(const YamlMap& root) {
  Optimizer optimizer;
  if (!root.has("optimizer")) return optimizer;
  const YamlMap map = root.map("optimizer");
  map.allow({"kind", "lr", "beta1", "beta2", "eps", "weight_decay", "clip_norm"});
  accept_only(map, "kind", {"adam"}, {"adamw", "sgd", "lamb"});
  optimizer.lr = map.number_or("lr", optimizer.lr, {0, 1000});
  optimizer.beta1 = map.number_or("beta1", optimizer.beta1, {0, 0.999999});
  optimizer.beta2 = map.number_or("beta2", optimizer.beta2, {0, 0.9999999});
  optimizer.eps = map.number_or("eps", optimizer.eps, {1e-30, 1});
  optimizer.weight_decay = map.number_or("weight_decay", optimizer.weight_decay, {0, 1});
  optimizer.clip_norm = map.number_or("clip_norm", optimizer.clip_norm, {0, 1e9});
  return optimizer;
}

// "server/index"
bool is_device_text(std::string_view text) {
  const std::size_t slash = text.find('/');
  if (slash == std::string_view::npos || slash == 0) return false;
  const std::string_view index = text.substr(slash + 1);
  return !index.empty() && index.size() <= 4 && std::all_of(index.begin(), index.end(), [](char c) {
    return std::isdigit(static_cast<unsigned char>(c)) != 0;
  });
}

std::vector<std::string> read_placement(const YamlMap& root) {
  if (!root.has("placement")) return {};
  if (root.is_scalar("placement") && root.text("placement") == "auto") return {};
  if (!root.is_list("placement")) {
    root.fail("placement", "write auto, or one device a rank like [s0/0, s0/1]");
    return {};
  }
  std::vector<std::string> devices = root.texts("placement");
  if (devices.empty()) root.fail("placement", "empty; write auto, or one device a rank");
  std::set<std::string_view> seen;
  for (const std::string& device : devices) {
    if (!is_device_text(device)) {
      root.fail("placement",
                fmt::format("'{}' is not a device; write server/index like s0/1", device));
    }
    if (!seen.insert(device).second)
      root.fail("placement", fmt::format("'{}' is given twice; a device holds one rank", device));
  }
  return devices;
}

Checkpoint read_checkpoint(const YamlMap& root) {
  if (!root.has("checkpoint")) return {};
  const YamlMap map = root.map("checkpoint");
  map.allow({"folder", "every"});
  return {.folder = map.text("folder"), .every = map.integer_or("every", 0, {0, 1'000'000'000})};
}

void read_strategy_of(const YamlMap& root, Job& job) {
  if (!root.has("strategy")) return;
  if (root.is_scalar("strategy")) {
    if (root.text("strategy") != "auto")
      root.fail("strategy", "write auto, or a map like {tp: 2, pp: 4}");
    return;
  }
  const YamlMap map = root.map("strategy");
  job.strategy = read_strategy(map);
  check_strategy(map, job);
}

}  // namespace

Result<Job> parse_job(std::string_view text, const std::string& file) {
  REGATTA_TRY(document, YamlDocument::parse(text, file));
  const YamlMap root = document.root();
  root.allow({"name", "model", "data", "global_batch", "precision", "optimizer", "steps", "seed",
              "strategy", "placement", "checkpoint"});
  Job job;
  job.name = root.text("name");
  if (job.name.size() > kLongestName || job.name.find('/') != std::string::npos ||
      std::any_of(job.name.begin(), job.name.end(),
                  [](char c) { return static_cast<unsigned char>(c) < 0x20U; })) {
    root.fail("name",
              fmt::format("not a plain name; use up to {} characters without '/'", kLongestName));
  }
  job.model = read_model(root.map("model"));
  const YamlMap data = root.map("data");
  data.allow({"text"});
  job.data_text = data.text("text");
  job.global_batch = root.integer("global_batch", {1, 10'000'000});
  accept_only(root, "precision", {"fp32", "bf16"}, {"fp16", "fp8"});
  if (root.text_or("precision", "fp32") == "bf16") job.precision = Precision::kBf16;
  job.optimizer = read_optimizer(root);
  job.steps = root.integer("steps", {1, 1'000'000'000});
  job.seed = static_cast<std::uint64_t>(
      root.long_integer_or("seed", 1, {0, std::numeric_limits<long long>::max()}));
  read_strategy_of(root, job);
  job.placement = read_placement(root);
  job.checkpoint = read_checkpoint(root);
  REGATTA_TRY_DO(document.status());
  return job;
}

Result<StrategyRequest> parse_strategy(std::string_view text, const std::string& origin) {
  if (trim(text) == "auto") return StrategyRequest{};
  if (text.find(':') == std::string_view::npos) {
    return Error{Code::kInvalidInput,
                 fmt::format("{}: '{}' is no map; write it like '{{tp: 2, pp: 4}}'", origin,
                             printable(text, 60))};
  }
  REGATTA_TRY(document, YamlDocument::parse(text, origin));
  const StrategyRequest request = read_strategy(document.root());
  REGATTA_TRY_DO(document.status());
  return request;
}

std::string resolve_path(const std::string& job_file, const std::string& path) {
  if (path.empty() || path.front() == '/') return path;
  const std::size_t slash = job_file.rfind('/');
  return slash == std::string::npos ? path : job_file.substr(0, slash + 1) + path;
}

}  // namespace regatta::workload
