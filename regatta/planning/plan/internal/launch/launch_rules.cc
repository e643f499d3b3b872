#include "regatta/planning/plan/internal/launch/launch_rules.h"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "regatta/base/core/text.h"
#include "regatta/planning/plan/internal/launch/launch_script.h"

namespace regatta::plan {
namespace {

using workload::StrategyRequest;

Error broken(Launcher launcher, const LaunchRule& rule, const RuleInput& input) {
  return unsupported_by(launcher, rule.reason(input), rule.remedy);
}

bool gives(const StrategyRequest& request, std::string_view key) {
  const std::array<std::pair<std::string_view, bool>, 18> given = {{
      {"tp", request.tp.has_value()},
      {"pp", request.pp.has_value()},
      {"dp", request.dp.has_value()},
      {"cp", request.cp.has_value()},
      {"ep", request.ep.has_value()},
      {"etp", request.etp.has_value()},
      {"micro_batch", request.micro_batch.has_value()},
      {"virtual_stages", request.virtual_stages.has_value()},
      {"zero", request.zero.has_value()},
      {"shard_ranks", request.shard_ranks.has_value()},
      {"recompute", request.recompute.has_value()},
      {"schedule", request.schedule.has_value()},
      {"context", request.context.has_value()},
      {"offload", request.offload.has_value()},
      {"sequence_parallel", request.sequence_parallel.has_value()},
      {"overlap", request.overlap.has_value()},
      {"compression", request.compression.has_value()},
      {"stage_layers", request.stage_layers.has_value()},
  }};
  return std::any_of(given.begin(), given.end(),
                     [&](const auto& one) { return one.first == key && one.second; });
}

std::vector<std::string> keys_of(const LaunchRule& rule) {
  if (rule.keys.empty()) return {};
  std::vector<std::string> keys = split(rule.keys, ',');
  for (std::string& key : keys)
    key = std::string(trim(key));
  return keys;
}

bool is_decided_by(const StrategyRequest& request, const LaunchRule& rule) {
  const std::vector<std::string> keys = keys_of(rule);
  return std::all_of(keys.begin(), keys.end(),
                     [&](const std::string& key) { return gives(request, key); });
}

}  // namespace

bool splits_key_heads(const RuleInput& input) {
  return attention_shape(input.model).kv_heads % input.strategy.tp == 0;
}

std::string key_heads_reason(const RuleInput& input) {
  return fmt::format("tp {} does not divide the {} heads of keys and values", input.strategy.tp,
                     attention_shape(input.model).kv_heads);
}

std::span<const LaunchRule> launch_rules(Launcher launcher) {
  switch (launcher) {
    case Launcher::kMegatron:
    case Launcher::kMegatronBridge:
      return megatron_rules();
    case Launcher::kDeepspeed:
      return deepspeed_rules();
    case Launcher::kTorchtitan:
      break;
  }
  return torchtitan_rules();
}

Status check_launch_rules(Launcher launcher, const RuleInput& input) {
  REGATTA_TRY_DO(check_launch_model(launcher, input.model, input.precision));
  for (const LaunchRule& rule : launch_rules(launcher))
    if (!rule.holds(input)) return broken(launcher, rule, input);
  return {};
}

Status check_launch_request(Launcher launcher, const PlanningProblem& problem) {
  const workload::Strategy asked = workload::requested(problem.request);
  const RuleInput input{.model = problem.model,
                        .strategy = asked,
                        .precision = problem.precision,
                        .micro_batches = std::max(1, micro_batches_of(problem, asked))};
  REGATTA_TRY_DO(check_launch_model(launcher, input.model, input.precision));
  for (const LaunchRule& rule : launch_rules(launcher)) {
    if (is_decided_by(problem.request, rule) && !rule.holds(input))
      return broken(launcher, rule, input);
  }
  return {};
}

StrategyPredicate runnable_by(Launcher launcher, const PlanningProblem& problem) {
  const auto rules = launch_rules(launcher);
  const bool runs_model =
      check_launch_model(launcher, problem.model, problem.precision).has_value();
  return [rules, runs_model, &model = problem.model, precision = problem.precision,
          batch = problem.global_batch](const workload::Strategy& strategy) {
    const RuleInput input{.model = model,
                          .strategy = strategy,
                          .precision = precision,
                          .micro_batches = batch / (strategy.dp * strategy.micro_batch)};
    return runs_model && std::all_of(rules.begin(), rules.end(),
                                     [&](const LaunchRule& rule) { return rule.holds(input); });
  };
}

std::vector<std::string> launch_bounds(Launcher launcher, const StrategyRequest& request) {
  std::vector<std::string> bounds;
  for (const LaunchRule& rule : launch_rules(launcher)) {
    const std::vector<std::string> keys = keys_of(rule);
    if (keys.empty() || gives(request, keys.front())) continue;
    bounds.push_back(fmt::format("{} {}", keys.front(), rule.runs));
  }
  return bounds;
}

}  // namespace regatta::plan
