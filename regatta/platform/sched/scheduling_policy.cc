#include "regatta/platform/sched/scheduling_policy.h"

#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "regatta/base/core/text.h"
#include "regatta/base/core/yaml_map.h"
#include "regatta/platform/packing/placement_policy.h"
#include "regatta/platform/sched/cluster_snapshot.h"

namespace regatta::sched {
namespace {

constexpr int kReservationsMax = 64;
constexpr int kMovesMax = 64;
constexpr int kSparesMax = 1 << 20;
constexpr NumberRange kTimes{.low = 0, .high = 1e9};
constexpr NumberRange kLeads{.low = 1, .high = 86400};
constexpr NumberRange kWeights{.low = 0, .high = 1e6};

SchedulingPolicy fifo_policy() {
  SchedulingPolicy policy;
  policy.name = "fifo";
  policy.backfill = BackfillRule::kNone;
  return policy;
}

SchedulingPolicy backfill_policy() {
  SchedulingPolicy policy;
  policy.name = "backfill";
  return policy;
}

SchedulingPolicy regatta_policy() {
  SchedulingPolicy policy;
  policy.name = "regatta";
  policy.is_fair = true;
  policy.order = JobOrder::kShortest;
  policy.ageing = {24 * 3600.0};
  policy.preempts = true;
  policy.reclaims = true;
  policy.protected_run_time = {600};
  policy.resizes = true;
  policy.sizes_services = true;
  policy.moves = 4;
  policy.avoids_failing = true;
  policy.mixes = true;
  return policy;
}

SchedulingPolicy attained_service_policy() {
  SchedulingPolicy policy = regatta_policy();
  policy.name = "attained_service";
  policy.service_levels = {{3 * 3600.0}};
  return policy;
}

const std::vector<SchedulingPolicy>& policies() {
  static const std::vector<SchedulingPolicy> list = {fifo_policy(), backfill_policy(),
                                                     regatta_policy(), attained_service_policy()};
  return list;
}

const Choices<JobOrder>& orders() {
  static const Choices<JobOrder> choices = {{"submitted", JobOrder::kSubmitted},
                                            {"shortest", JobOrder::kShortest},
                                            {"least_service", JobOrder::kLeastService},
                                            {"deadline", JobOrder::kDeadline}};
  return choices;
}

const Choices<BackfillRule>& backfill_rules() {
  static const Choices<BackfillRule> choices = {{"none", BackfillRule::kNone},
                                                {"reservation", BackfillRule::kReservation},
                                                {"greedy", BackfillRule::kGreedy}};
  return choices;
}

const Choices<VictimRule>& victim_rules() {
  static const Choices<VictimRule> choices = {{"least_loss", VictimRule::kLeastLoss},
                                              {"lowest_priority", VictimRule::kLowestPriority}};
  return choices;
}

void read_weights(const YamlMap& root, SchedulingPolicy& policy) {
  if (!root.has("weights")) return;
  const YamlMap weights = root.map("weights");
  weights.allow({"communication", "fragmentation", "risk", "spread"});
  policy.communication_weight =
      weights.number_or("communication", policy.communication_weight, kWeights);
  policy.fragmentation_weight =
      weights.number_or("fragmentation", policy.fragmentation_weight, kWeights);
  policy.risk_weight = weights.number_or("risk", policy.risk_weight, kWeights);
  policy.spread_weight = weights.number_or("spread", policy.spread_weight, kWeights);
}

void read_spares(const YamlMap& root, SpareNodes& spares) {
  if (!root.has("spares")) return;
  const YamlMap map = root.map("spares");
  map.allow({"nodes", "share", "gang"});
  spares.nodes = map.integer_or("nodes", spares.nodes, {0, kSparesMax});
  if (map.has("share")) spares.share = map.ratio_or("share", spares.share);
  spares.gang_devices = map.number_or("gang", spares.gang_devices, {.low = 1, .high = 1e7});
  if (!map.has("nodes") && !map.has("share"))
    map.fail("nodes", "no number of spare nodes; give nodes: 4, or share: 2%");
}

void read_consolidation(const YamlMap& root, Consolidation& rule) {
  if (!root.has("consolidation")) return;
  const YamlMap map = root.map("consolidation");
  map.allow({"moves", "node", "leaf", "rest"});
  rule.moves = map.integer_or("moves", rule.moves, {0, kMovesMax});
  rule.node = map.seconds_or("node", rule.node, kTimes);
  rule.leaf = map.seconds_or("leaf", rule.leaf, kTimes);
  rule.rest = map.seconds_or("rest", rule.rest, {.low = 1, .high = kTimes.high});
}

void read_services(const YamlMap& root, SchedulingPolicy& policy) {
  if (!root.has("services")) return;
  const YamlMap services = root.map("services");
  services.allow({"follow_demand", "lead", "quantile", "hold"});
  policy.sizes_services = services.boolean_or("follow_demand", policy.sizes_services);
  policy.budget.reclaim_lead = services.seconds_or("lead", policy.budget.reclaim_lead, kLeads);
  policy.service_quantile =
      services.number_or("quantile", policy.service_quantile, {.low = 0.5, .high = 0.9999});
  policy.service_hold = services.seconds_or("hold", policy.service_hold, kLeads);
}

void read_levels(const YamlMap& root, SchedulingPolicy& policy) {
  if (!root.has("service_levels")) return;
  policy.service_levels.clear();
  for (const std::string& text : root.texts("service_levels")) {
    const Result<Seconds> level = parse_seconds(text);
    const Seconds least = policy.service_levels.empty() ? Seconds{0} : policy.service_levels.back();
    if (!level || *level <= least) {
      root.fail("service_levels", "write rising times of one device, like [3h, 30h]");
      return;
    }
    policy.service_levels.push_back(*level);
  }
}

void read_mixing(const YamlMap& root, SchedulingPolicy& policy) {
  constexpr NumberRange kShares{.low = 0, .high = 1};
  policy.mixes = root.boolean_or("mix", policy.mixes);
  policy.mix_first_below = root.number_or("mix_first_below", policy.mix_first_below, kShares);
  policy.targets_per_device =
      root.integer_or("targets_per_device", policy.targets_per_device, {1, kMixedJobsMax});
  policy.least_share = root.number_or("least_share", policy.least_share, kShares);
  policy.interference = root.number_or("interference", policy.interference, {.low = 0, .high = 2});
  policy.host_memory_mib = static_cast<int>(
      root.bytes("host_memory", Bytes{static_cast<long long>(policy.host_memory_mib) << 20},
                 {.low = 0, .high = 0x1p50})
          .value >>
      20);
  if (!root.has("budget")) return;
  const YamlMap budget = root.map("budget");
  budget.allow({"missed_share", "missed_price", "targets_first"});
  policy.budget.missed_share =
      budget.number_or("missed_share", policy.budget.missed_share, kShares);
  policy.budget.targets_first = budget.boolean_or("targets_first", policy.budget.targets_first);
  policy.budget.missed_price =
      budget.number_or("missed_price", policy.budget.missed_price, {.low = 0, .high = 1e6});
}

void read_keys(const YamlMap& root, SchedulingPolicy& policy) {
  root.allow({"name",
              "base",
              "fair",
              "order",
              "backfill",
              "reservations",
              "ageing",
              "preempt",
              "reclaim",
              "victims",
              "service_levels",
              "protected_run_time",
              "resize",
              "moves",
              "weights",
              "slices",
              "consolidation",
              "avoid_failing",
              "node_repair",
              "spares",
              "mix",
              "mix_first_below",
              "targets_per_device",
              "least_share",
              "interference",
              "host_memory",
              "budget",
              "services"});
  policy.name = root.text("name", policy.name);
  policy.is_fair = root.boolean_or("fair", policy.is_fair);
  policy.order = root.choice("order", orders(), std::optional(policy.order));
  policy.backfill = root.choice("backfill", backfill_rules(), std::optional(policy.backfill));
  policy.reservations = root.integer_or("reservations", policy.reservations, {0, kReservationsMax});
  policy.ageing = root.seconds_or("ageing", policy.ageing, kTimes);
  policy.preempts = root.boolean_or("preempt", policy.preempts);
  policy.reclaims = root.boolean_or("reclaim", policy.reclaims);
  policy.victims = root.choice("victims", victim_rules(), std::optional(policy.victims));
  read_levels(root, policy);
  policy.protected_run_time =
      root.seconds_or("protected_run_time", policy.protected_run_time, kTimes);
  policy.resizes = root.boolean_or("resize", policy.resizes);
  policy.moves = root.integer_or("moves", policy.moves, {0, kMovesMax});
  read_consolidation(root, policy.consolidation);
  policy.avoids_failing = root.boolean_or("avoid_failing", policy.avoids_failing);
  policy.node_repair =
      root.seconds_or("node_repair", policy.node_repair, {.low = 1, .high = kTimes.high});
  read_spares(root, policy.spares);
  read_weights(root, policy);
  read_mixing(root, policy);
  read_services(root, policy);
  policy.slices = root.text("slices", policy.slices);
  if (const auto slices = packing::find_placement_policy(policy.slices); !slices)
    root.fail("slices", slices.error().message);
}

}  // namespace

std::vector<std::string> scheduling_policy_names() {
  std::vector<std::string> names;
  for (const SchedulingPolicy& policy : policies())
    names.push_back(policy.name);
  return names;
}

Result<SchedulingPolicy> find_scheduling_policy(std::string_view name) {
  const auto found =
      std::find_if(policies().begin(), policies().end(),
                   [&](const SchedulingPolicy& policy) { return policy.name == name; });
  if (found != policies().end()) return *found;
  return Error{Code::kInvalidInput,
               fmt::format("no scheduling policy is called '{}'; choose one of {}, or give a file",
                           printable(name, 64), join(scheduling_policy_names(), ", "))};
}

Result<SchedulingPolicy> parse_scheduling_policy(std::string_view text, std::string_view file,
                                                 std::optional<double> interference) {
  REGATTA_TRY(document, YamlDocument::parse(text, file));
  const YamlMap root = document.root();
  SchedulingPolicy policy = regatta_policy();
  if (root.has("base")) {
    const Result<SchedulingPolicy> base = find_scheduling_policy(root.text("base"));
    if (base)
      policy = *base;
    else
      root.fail("base", base.error().message);
  }
  if (interference) policy.interference = *interference;
  read_keys(root, policy);
  REGATTA_TRY_DO(document.status());
  return policy;
}

}  // namespace regatta::sched
