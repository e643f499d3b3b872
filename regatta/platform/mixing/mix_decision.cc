#include "regatta/platform/mixing/mix_decision.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include <fmt/format.h>

#include "regatta/base/core/ids.h"
#include "regatta/platform/mixing/interference.h"
#include "regatta/platform/mixing/internal/mode_costs.h"

namespace regatta::mixing {
namespace {

constexpr int kModes = 4;
constexpr unsigned kHighWeight = 1000;  // so that high priority is never in debt to the rest

Status check_workloads(std::span<const MixedWorkload> workloads, const DeviceCapacity& device) {
  if (workloads.empty()) return Error{Code::kInvalidInput, "no workload to mix; give at least one"};
  const std::size_t intervals = workloads.front().demand.size();
  for (const MixedWorkload& workload : workloads) {
    if (workload.demand.size() != intervals || intervals == 0)
      return Error{
          Code::kInvalidInput,
          fmt::format("workload {}: {} intervals, the first workload has {}; give series of "
                      "one length, at least 1",
                      workload.name, workload.demand.size(), intervals)};
    if (!sharing::check_minimum_memory(workload.memory) || workload.memory > device.memory)
      return Error{
          Code::kInvalidInput,
          fmt::format("workload {}: {} of memory; give 2MiB to the device's {}", workload.name,
                      format_bytes(workload.memory), format_bytes(device.memory))};
  }
  return {};
}

float high_percentile(const MixedWorkload& workload) {
  std::vector<float> values;
  for (const float demand : workload.demand)
    if (demand >= 0) values.push_back(demand);
  if (values.empty()) return 0;
  const std::size_t high = (values.size() - 1) * 99 / 100;
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(high),
                   values.end());
  return values[high];
}

unsigned weight_of(const MixedWorkload& workload) {
  return std::max(1U, static_cast<unsigned>(std::lround(100 * high_percentile(workload))));
}

// Whole percents, so that the sum stays within 100.
std::vector<unsigned> quotas_of(const std::vector<unsigned>& weights) {
  const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
  std::vector<unsigned> quotas;
  for (const unsigned weight : weights)
    quotas.push_back(static_cast<unsigned>(std::floor(weight / std::max(1.0, sum / 100))));
  return quotas;
}

std::vector<SliceSetting> settings_of(MixMode mode, std::span<const MixedWorkload> workloads,
                                      const ModeOutcome& outcome) {
  constexpr unsigned kPercentPpm = 10'000;
  std::vector<unsigned> weights;
  if (mode == MixMode::kShared)
    for (const MixedWorkload& workload : workloads)
      weights.push_back(weight_of(workload));
  const std::vector<unsigned> quotas = quotas_of(weights);
  std::vector<SliceSetting> settings;
  for (std::size_t i = 0; i < workloads.size(); ++i) {
    const MixedWorkload& workload = workloads[i];
    SliceSetting setting;
    setting.workload = workload.name;
    setting.slice.memory[0] = workload.memory;
    setting.expected_share = outcome.shares_done[i];
    const bool has_target = has_latency_target(workload.load_class);
    switch (mode) {
      case MixMode::kShared:
        setting.slice.weight = weights[i];
        if (quotas[i] > 0) setting.slice.compute_ppm = quotas[i] * kPercentPpm;
        break;
      case MixMode::kPreemptive:
        setting.slice.weight = has_target ? kHighWeight : 1;
        setting.slice.is_high_priority = has_target;
        break;
      case MixMode::kTimeSlice:
        setting.has_overcommit = true;
        setting.lease = outcome.lease;
        break;
      case MixMode::kTidal:
        setting.slice.weight = has_target ? kHighWeight : 1;
        setting.slice.is_high_priority = has_target;
        if (!has_target) setting.runs = outcome.low_ranges;
        break;
    }
    settings.push_back(std::move(setting));
  }
  return settings;
}

std::string reason_of(const MixDecision& decision, const ServiceBudget& budget) {
  const ModeCost& chosen = at(decision.modes, static_cast<int>(decision.mode));
  std::string text =
      fmt::format("{} loses {:.1f} device intervals and misses {:.2f} % of a workload's intervals",
                  name_of(decision.mode), chosen.lost, 100 * chosen.missed_share);
  for (const ModeCost& mode : decision.modes) {
    if (mode.mode == decision.mode) continue;
    text +=
        fmt::format("; {}: {}", name_of(mode.mode),
                    !mode.obstacle.empty() ? mode.obstacle
                    : mode.missed_share > budget.missed_share
                        ? fmt::format("misses {:.2f} %", 100 * mode.missed_share)
                        : fmt::format("costs {:.1f} instead of {:.1f}", mode.cost, chosen.cost));
  }
  return text;
}

}  // namespace

Result<MixDecision> decide_mix(std::span<const MixedWorkload> workloads,
                               const DeviceCapacity& device, const ServiceBudget& budget) {
  REGATTA_TRY_DO(check_workloads(workloads, device));
  MixDecision decision;
  std::vector<ModeOutcome> outcomes;
  for (int mode = 0; mode < kModes; ++mode) {
    outcomes.push_back(try_mode(static_cast<MixMode>(mode), workloads, device, budget));
    decision.modes.push_back(outcomes.back().cost);
  }
  const auto is_better = [&](const ModeCost& one, const ModeCost& other) {
    const bool one_keeps = one.missed_share <= budget.missed_share;
    const bool other_keeps = other.missed_share <= budget.missed_share;
    if (one_keeps != other_keeps) return one_keeps;
    return one_keeps ? one.cost < other.cost : one.missed_share < other.missed_share;
  };
  const ModeCost* best = nullptr;
  for (const ModeCost& mode : decision.modes)
    if (mode.obstacle.empty() && (best == nullptr || is_better(mode, *best))) best = &mode;
  if (best == nullptr)
    return Error{
        Code::kExhausted,
        fmt::format("the memory of {} workloads fits in no mode ({}); give the device fewer, "
                    "or host memory",
                    workloads.size(), decision.modes.front().obstacle)};
  decision.mode = best->mode;
  decision.is_within_budget = best->missed_share <= budget.missed_share;
  decision.policy = "burst-weight";
  decision.slices =
      settings_of(decision.mode, workloads, at(outcomes, static_cast<int>(decision.mode)));
  decision.reason = reason_of(decision, budget);
  return decision;
}

std::vector<std::string> run_flags(const SliceSetting& setting) {
  std::vector<std::string> flags = {"--name", setting.workload};
  for (const auto& [gpu, memory] : setting.slice.memory) {
    flags.emplace_back("--memory");
    flags.push_back(fmt::format("{}MiB", memory.value >> 20));
  }
  if (setting.slice.compute_ppm) {
    flags.emplace_back("--compute");
    flags.push_back(fmt::format("{:g}", *setting.slice.compute_ppm / 1e4));
  }
  if (setting.slice.weight) {
    flags.emplace_back("--weight");
    flags.push_back(fmt::format("{}", *setting.slice.weight));
  }
  if (setting.slice.is_high_priority) {
    flags.emplace_back("--priority");
    flags.emplace_back(*setting.slice.is_high_priority ? "high" : "normal");
  }
  if (setting.has_overcommit) flags.emplace_back("--overcommit");
  if (setting.lease.value > 0) {
    flags.emplace_back("--lease");
    flags.push_back(fmt::format("{:g}s", setting.lease.value));
  }
  return flags;
}

std::vector<std::string> daemon_flags(const MixDecision& decision, const DeviceCapacity& device) {
  std::vector<std::string> flags = {"--gpu", fmt::format("{}MiB", device.memory.value >> 20),
                                    "--policy", decision.policy};
  if (decision.mode == MixMode::kTimeSlice) {
    flags.emplace_back("--host-memory");
    flags.push_back(fmt::format("{}MiB", device.host_memory.value >> 20));
    flags.emplace_back("--link");
    flags.push_back(fmt::format("{:g}GB/s", device.link.value / 1e9));
  }
  return flags;
}

}  // namespace regatta::mixing
