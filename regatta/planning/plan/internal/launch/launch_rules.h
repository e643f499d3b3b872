// plan/internal/launch/launch_rules.h: what the framework of each launcher can run, in one table:
// it refuses a plan by name, and it binds the search (plan/launch.h).
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "regatta/base/core/result.h"
#include "regatta/model/workload/model.h"
#include "regatta/model/workload/strategy.h"
#include "regatta/planning/plan/launch.h"

namespace regatta::plan {

// The references outlive the call.
struct RuleInput {
  const workload::ModelShape& model;
  const workload::Strategy& strategy;
  workload::Precision precision = workload::Precision::kBf16;
  int micro_batches = 0;  // as workload::micro_batches() counts them
};

struct LaunchRule {
  std::string_view keys;  // of the strategy, that decide it: "zero, shard_ranks"; "": none does
  std::string_view runs;  // the values of the first that the framework runs: "0 or 1"
  bool (*holds)(const RuleInput&);
  std::string (*reason)(const RuleInput&);  // why it does not run others: "zero 2 is FSDP"
  std::string_view remedy;                  // "set zero 1"
};

// Every framework splits whole heads of keys and values between tensor ranks.
bool splits_key_heads(const RuleInput& input);
std::string key_heads_reason(const RuleInput& input);
inline constexpr LaunchRule kKeyHeadsRule{"tp", "a divisor of the heads of keys and values",
                                          splits_key_heads, key_heads_reason,
                                          "choose a divisor of them"};

// Those without keys first.
std::span<const LaunchRule> launch_rules(Launcher launcher);
std::span<const LaunchRule> megatron_rules();
std::span<const LaunchRule> deepspeed_rules();
std::span<const LaunchRule> torchtitan_rules();

// kUnsupported: a model or a precision that the framework cannot run with any strategy.
Status check_launch_model(Launcher launcher, const workload::ModelShape& model,
                          workload::Precision precision);

// kUnsupported names the first rule that the input breaks, with its reason and remedy.
Status check_launch_rules(Launcher launcher, const RuleInput& input);

}  // namespace regatta::plan
