#include "regatta/model/workload/internal/strategy_yaml.h"

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "regatta/base/core/text.h"
#include "regatta/model/workload/internal/strategy_constraint.h"
#include "regatta/model/workload/internal/yaml_enums.h"

namespace regatta::workload {
namespace {

constexpr IntRange kDegree{1, 1'000'000};
// The beginning of messages of check_stage_layers(); those of a file begin with its line.
constexpr std::array kSearchedKeys = {"tp",          "pp",
                                      "dp",          "cp",
                                      "ep",          "etp",
                                      "micro_batch", "virtual_stages",
                                      "zero",        "shard_ranks",
                                      "recompute",   "schedule",
                                      "context",     "sequence_parallel",
                                      "offload",     "overlap"};
constexpr std::string_view kStageLayers = "stage_layers: ";

// Whether the value of `key` says what it may be, not what it is: a list of values, or a relation.
bool is_constraint(const YamlMap& map, const char* key) {
  if (!map.has(key)) return false;
  if (map.kind(key) == YamlKind::kList) return true;
  if (map.kind(key) != YamlKind::kScalar) return false;
  const std::string text = map.text(key);
  return text.find_first_of("<>=!") == 0 || text.starts_with("in ") || text.starts_with("in{");
}

bool is_open(const YamlMap& map, const char* key) {
  return is_unset_or_auto(map, key) || is_constraint(map, key);
}

// Those of `constraints`, and those that stand at their keys.
std::vector<StrategyConstraint> constraints(const YamlMap& map) {
  std::vector<StrategyConstraint> all;
  const auto add = [&](const char* key, const std::string& text) {
    auto constraint = parse_constraint(text, "a constraint");
    if (constraint)
      all.push_back(*std::move(constraint));
    else
      map.fail(key, constraint.error().message);
  };
  if (map.has("constraints"))
    for (const std::string& text : map.texts("constraints"))
      add("constraints", text);
  for (const char* key : kSearchedKeys) {
    if (!is_constraint(map, key)) continue;
    const bool is_list = map.kind(key) == YamlKind::kList;
    add(key, fmt::format(
                 "{} {}", key,
                 is_list ? fmt::format("in {{{}}}", join(map.texts(key), ", ")) : map.text(key)));
  }
  return all;
}

std::optional<int> number(const YamlMap& map, const char* key, IntRange range) {
  if (is_open(map, key)) return std::nullopt;
  return map.integer(key, range);
}

std::optional<std::vector<int>> numbers(const YamlMap& map, const char* key, IntRange range) {
  if (is_unset_or_auto(map, key)) return std::nullopt;
  std::vector<int> values = map.integers(key, range);
  if (values.empty()) map.fail(key, "empty; give one number a stage, or leave the key out");
  return values;
}

std::optional<bool> boolean(const YamlMap& map, const char* key) {
  if (is_open(map, key)) return std::nullopt;
  return map.boolean_or(key, false);
}

template <typename E, std::size_t kCount>
std::optional<E> word(const YamlMap& map, const char* key, const std::array<E, kCount>& values) {
  if (is_open(map, key)) return std::nullopt;
  return map.choice(key, enum_choices(values));
}

// `a` of the key must divide b.
void divides(const YamlMap& map, const char* key, int a, const char* name, int b) {
  if (b % a == 0) return;
  map.fail(key,
           fmt::format("{} {} does not divide {} {}; choose a divisor of {}", key, a, name, b, b));
}

void check_schedule(const YamlMap& map, const StrategyRequest& request, const ModelShape& model) {
  const int parts = request.virtual_stages.value_or(1);
  if (request.schedule && request.virtual_stages) {
    const bool is_interleaved = *request.schedule == PipelineSchedule::kInterleaved;
    if (is_interleaved && parts < 2)
      map.fail("virtual_stages", "schedule interleaved needs at least 2; change one of them");
    if (!is_interleaved && parts > 1) {
      map.fail("virtual_stages",
               fmt::format("schedule {} has no virtual stages, but {} are given; write schedule: "
                           "interleaved or leave the key out",
                           to_string(*request.schedule), parts));
    }
  }
  if (!request.pp) return;
  if (*request.pp > model.layers) {
    map.fail("pp", fmt::format("pp {} exceeds layers {}; a stage needs a layer", *request.pp,
                               model.layers));
  }
  if (static_cast<long long>(*request.pp) * parts > model.layers &&
      !lists_parts(requested(request))) {
    map.fail("virtual_stages",
             fmt::format("pp {} x virtual_stages {} exceeds layers {}; a part needs a layer, "
                         "so choose a product of at most {}",
                         *request.pp, parts, model.layers, model.layers));
  }
  if (request.schedule == PipelineSchedule::kDualPipe && *request.pp % 2 != 0)
    map.fail("pp",
             fmt::format("dualpipe needs an even pp, not {}; change one of them", *request.pp));
}

// Tokens, experts and what replicas share.
void check_sharing(const YamlMap& map, const StrategyRequest& request, const ModelShape& model) {
  if (request.cp) divides(map, "cp", *request.cp, "seq", model.seq);
  if (request.ep && *request.ep > 1) {
    if (!has_experts(model))
      map.fail("ep", fmt::format("ep {}: the model has no experts; use ep 1", *request.ep));
    else
      divides(map, "ep", *request.ep, "experts", model.experts.count);
  }
  if (request.etp) {
    if (!has_experts(model))
      map.fail("etp",
               fmt::format("etp {}: the model has no experts; leave the key out", *request.etp));
    else
      divides(map, "etp", *request.etp, "expert_ffn_hidden", model.experts.ffn_hidden);
  }
  if (request.shard_ranks.value_or(0) > 0 && request.zero == 0) {
    map.fail("shard_ranks", fmt::format("{} replicas share nothing with zero 0; use zero 1 to 3 or "
                                        "leave the key out",
                                        *request.shard_ranks));
  }
}

}  // namespace

StrategyRequest read_strategy(const YamlMap& map) {
  map.allow({"tp", "pp", "dp", "cp", "ep", "etp", "micro_batch", "schedule", "virtual_stages",
             "sequence_parallel", "zero", "shard_ranks", "context", "offload", "recompute",
             "compression", "overlap", "stage_layers", "constraints"});
  StrategyRequest request;
  request.constraints = constraints(map);
  request.tp = number(map, "tp", kDegree);
  request.pp = number(map, "pp", kDegree);
  request.dp = number(map, "dp", kDegree);
  request.cp = number(map, "cp", kDegree);
  request.ep = number(map, "ep", kDegree);
  request.etp = number(map, "etp", kDegree);
  request.micro_batch = number(map, "micro_batch", kDegree);
  request.virtual_stages = number(map, "virtual_stages", kDegree);
  request.zero = number(map, "zero", {0, 3});
  request.shard_ranks = number(map, "shard_ranks", {0, kDegree.high});
  request.stage_layers = numbers(map, "stage_layers", {0, kDegree.high});
  // They say how many stages there are.
  if (request.stage_layers && !request.pp)
    request.pp = static_cast<int>(request.stage_layers->size());
  request.schedule = word(map, "schedule", kPipelineSchedules);
  request.context = word(map, "context", kContextParallelisms);
  request.offload = word(map, "offload", kOffloads);
  request.recompute = word(map, "recompute", kRecomputes);
  request.sequence_parallel = boolean(map, "sequence_parallel");
  request.overlap = boolean(map, "overlap");
  // Here auto is a kind of compression.
  if (map.has("compression"))
    request.compression = map.choice("compression", enum_choices(kGradientCompressions));
  if (request.virtual_stages.value_or(1) > 1 && !request.schedule)
    request.schedule = PipelineSchedule::kInterleaved;
  return request;
}

void check_strategy(const YamlMap& map, const StrategyRequest& request, const ModelShape& model,
                    int global_batch) {
  if (request.tp) {
    divides(map, "tp", *request.tp, "heads", model.heads);
    divides(map, "tp", *request.tp, "ffn_hidden", model.ffn_hidden);
  }
  check_schedule(map, request, model);
  if (const Status status = check_stage_layers(model, requested(request)); !status)
    map.fail("stage_layers", status.error().message.substr(kStageLayers.size()));
  check_sharing(map, request, model);
  if (request.dp) divides(map, "dp", *request.dp, "global_batch", global_batch);
  if (request.micro_batch)
    divides(map, "micro_batch", *request.micro_batch, "global_batch", global_batch);
}

}  // namespace regatta::workload
