#include <algorithm>
#include <cctype>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "regatta/base/core/text.h"
#include "regatta/base/core/yaml_map.h"
#include "regatta/model/workload/internal/strategy_yaml.h"
#include "regatta/model/workload/internal/tuning.h"
#include "regatta/model/workload/internal/yaml_enums.h"
#include "regatta/model/workload/job.h"

namespace regatta::workload {
namespace {

constexpr std::size_t kLongestName = 64;

// `key` may only say a word of `accepted`; those of `later` are named as not yet available.
void accept_only(const YamlMap& map, const char* key, const std::vector<std::string>& accepted,
                 const std::vector<std::string>& later) {
  if (!map.has(key)) return;
  const std::string word = map.text(key);
  if (std::find(accepted.begin(), accepted.end(), word) != accepted.end()) return;
  if (std::find(later.begin(), later.end(), word) != later.end()) {
    return map.fail(key,
                    fmt::format("'{}' is not yet available; use {} or leave the key out", word,
                                join(accepted, " or ")),
                    Code::kUnsupported);
  }
  std::vector<std::string> words = accepted;
  words.insert(words.end(), later.begin(), later.end());
  const std::string nearest = nearest_word(word, words);
  map.fail(key, fmt::format("'{}' is not one of {}{}", word, join(words, ", "),
                            nearest.empty() ? "" : fmt::format("; did you mean '{}'?", nearest)));
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
  if (root.kind("placement") == YamlKind::kScalar && root.text("placement") == "auto") return {};
  if (root.kind("placement") != YamlKind::kList) {
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
  if (root.kind("strategy") == YamlKind::kScalar) {
    if (root.text("strategy") != "auto")
      root.fail("strategy", "write auto, or a map like {tp: 2, pp: 4}");
    return;
  }
  const YamlMap map = root.map("strategy");
  job.strategy = read_strategy(map);
  check_strategy(map, job.strategy, job.model, job.global_batch);
}

}  // namespace

Result<Job> parse_job(std::string_view text, const std::string& file, const ModelLoader& load) {
  REGATTA_TRY(document, YamlDocument::parse(text, file));
  const YamlMap root = document.root();
  root.allow({"name", "model", "data", "global_batch", "precision", "optimizer", "steps", "seed",
              "strategy", "placement", "checkpoint", "tuning"});
  Job job;
  job.name = root.text("name");
  if (job.name.size() > kLongestName || job.name.find('/') != std::string::npos ||
      std::any_of(job.name.begin(), job.name.end(),
                  [](char c) { return static_cast<unsigned char>(c) < 0x20U; })) {
    root.fail("name",
              fmt::format("not a plain name; use up to {} characters without '/'", kLongestName));
  }
  ModelLoader load_beside;
  if (load) load_beside = [&](const std::string& path) { return load(resolve_path(file, path)); };
  job.model = read_model(root.map("model"), load_beside);
  if (root.has("tuning")) job.model.adapters = read_tuning(root.map("tuning"));
  if (root.has("data")) {
    const YamlMap data = root.map("data");
    data.allow({"text"});
    job.data_text = data.text("text");
  }
  job.global_batch = root.integer("global_batch", {1, 10'000'000});
  job.precision = root.choice("precision", enum_choices(kPrecisions), std::optional(job.precision));
  job.optimizer = read_optimizer(root);
  job.steps = root.integer_or("steps", job.steps, {1, 1'000'000'000});
  job.seed = static_cast<std::uint64_t>(
      root.long_integer_or("seed", 1, {0, std::numeric_limits<long long>::max()}));
  read_strategy_of(root, job);
  job.placement = read_placement(root);
  job.checkpoint = read_checkpoint(root);
  REGATTA_TRY_DO(document.status());
  return job;
}

Result<StrategyRequest> parse_strategy(std::string_view text, const std::string& origin) {
  if (trim(text) == "auto" || trim(text) == "{}") return StrategyRequest{};
  if (text.find(':') == std::string_view::npos) {
    const bool is_condition = text.find_first_of("<>") != std::string_view::npos;
    return Error{
        Code::kInvalidInput,
        fmt::format("{}: '{}' is no map; write it like '{{tp: 2, pp: 4}}'{}", origin,
                    printable(text, 60), is_condition ? ", and a condition as --constraint" : "")};
  }
  auto document = YamlDocument::parse(text, origin);
  if (!document && text.find('>') != std::string_view::npos) {
    return Error{document.error().code, document.error().message +
                                            "; a relation that begins with > needs quotes: "
                                            "{pp: \">= 8\"}"};
  }
  if (!document) return document.error();
  const StrategyRequest request = read_strategy(document->root());
  REGATTA_TRY_DO(document->status());
  return request;
}

std::string resolve_path(const std::string& job_file, const std::string& path) {
  if (path.empty() || path.front() == '/') return path;
  const std::size_t slash = job_file.rfind('/');
  return slash == std::string::npos ? path : job_file.substr(0, slash + 1) + path;
}

}  // namespace regatta::workload
