#include "regatta/platform/mixing/internal/mode_costs.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include <fmt/format.h>

#include "regatta/base/core/ids.h"
#include "regatta/platform/mixing/demand_forecast.h"

namespace regatta::mixing {
namespace {

constexpr double kEnough = 1e-6;    // of a device: less than this is not lacking
constexpr double kLowDemand = 0.1;  // of a device: tidal work runs while no more is expected
constexpr double kTidalQuantile = 0.95;
constexpr double kLeases[] = {10, 60, 300};  // seconds

// Counts of the intervals so far.
struct Tally {
  std::vector<double> missed;   // of each workload
  std::vector<double> working;  // intervals in which it has work
  double lost = 0;
};

Tally empty_tally(std::size_t workloads) {
  return {std::vector<double>(workloads), std::vector<double>(workloads), 0};
}

ModeCost cost_of(MixMode mode, const Tally& tally, const ServiceBudget& budget) {
  ModeCost cost{mode, "", tally.lost, 0, 0, 0};
  for (std::size_t i = 0; i < tally.missed.size(); ++i) {
    cost.missed += tally.missed[i];
    if (tally.working[i] > 0)
      cost.missed_share = std::max(cost.missed_share, tally.missed[i] / tally.working[i]);
  }
  cost.cost = cost.lost + budget.missed_price * cost.missed;
  return cost;
}

Bytes memory_of(std::span<const MixedWorkload> workloads) {
  return std::accumulate(
      workloads.begin(), workloads.end(), Bytes{},
      [](Bytes sum, const MixedWorkload& workload) { return sum + workload.memory; });
}

std::string lacking_memory(Bytes needed, Bytes there) {
  return fmt::format("needs {} of memory, there are {}", format_bytes(needed), format_bytes(there));
}

// Needs of the workloads that run, grown by what the others occupy.
std::vector<double> needs_of(std::span<const double> demands, double k) {
  const double sum = std::min(1.0, std::accumulate(demands.begin(), demands.end(), 0.0));
  std::vector<double> needs;
  for (const double demand : demands)
    needs.push_back(demand * (1 + k * std::max(0.0, sum - demand)));
  return needs;
}

std::vector<double> demands_at(std::span<const MixedWorkload> workloads, std::size_t interval) {
  std::vector<double> demands;
  for (const MixedWorkload& workload : workloads)
    demands.push_back(std::max(0.0F, workload.demand[interval]));
  return demands;
}

// Books what the workloads got of their needs. Lost is the work itself, without interference.
void book(std::span<const MixedWorkload> workloads, std::span<const double> demands,
          std::span<const double> needs, std::span<const double> got, Tally& tally) {
  for (std::size_t i = 0; i < workloads.size(); ++i) {
    if (demands[i] <= 0) continue;
    tally.working[i] += 1;
    const double lacking = needs[i] - got[i];
    if (lacking <= kEnough) continue;
    tally.lost += demands[i] * lacking / needs[i];
    if (has_latency_target(workloads[i].load_class)) tally.missed[i] += 1;
  }
}

// Work with a target takes first where it is preferred.
std::vector<double> divide(std::span<const MixedWorkload> workloads,
                           const std::vector<double>& needs, bool prefers_targets) {
  std::vector<double> weights;
  std::vector<double> first;
  for (std::size_t i = 0; i < workloads.size(); ++i) {
    const bool is_first = prefers_targets && has_latency_target(workloads[i].load_class);
    weights.push_back(std::max(needs[i], 0.01));
    first.push_back(is_first ? needs[i] : 0);
  }
  if (!prefers_targets) return divide_by_weight(needs, weights, 1);
  std::vector<double> got = divide_by_weight(first, weights, 1);
  std::vector<double> second = needs;
  for (std::size_t i = 0; i < needs.size(); ++i)
    if (has_latency_target(workloads[i].load_class)) second[i] = 0;
  const double left = std::max(0.0, 1 - std::accumulate(got.begin(), got.end(), 0.0));
  const std::vector<double> rest = divide_by_weight(second, weights, left);
  for (std::size_t i = 0; i < needs.size(); ++i)
    got[i] += rest[i];
  return got;
}

ModeOutcome try_together(MixMode mode, std::span<const MixedWorkload> workloads,
                         const DeviceCapacity& device, const ServiceBudget& budget) {
  const Bytes memory = memory_of(workloads);
  if (memory > device.memory) return {{mode, lacking_memory(memory, device.memory)}, {}, {}};
  Tally tally = empty_tally(workloads.size());
  for (std::size_t t = 0; t < workloads.front().demand.size(); ++t) {
    const std::vector<double> demands = demands_at(workloads, t);
    const std::vector<double> needs = needs_of(demands, device.interference);
    book(workloads, demands, needs, divide(workloads, needs, mode == MixMode::kPreemptive), tally);
  }
  return {cost_of(mode, tally, budget), {}, {}};
}

// One at a time: no interference, but each change moves memory, and nobody with a latency target
// can wait for the lease of another.
Tally play_leases(std::span<const MixedWorkload> workloads, const DeviceCapacity& device,
                  Seconds interval, double lease) {
  Tally tally = empty_tally(workloads.size());
  const bool is_swapped = memory_of(workloads) > device.memory;
  int resident = -1;
  for (std::size_t t = 0; t < workloads.front().demand.size(); ++t) {
    const std::vector<double> demands = demands_at(workloads, t);
    std::vector<int> active;
    double need = 0;
    double swap_bytes = 0;
    for (std::size_t i = 0; i < demands.size(); ++i) {
      if (demands[i] <= 0) continue;
      active.push_back(static_cast<int>(i));
      need += demands[i];
      swap_bytes += 2 * static_cast<double>(workloads[i].memory.value);
    }
    if (active.empty()) continue;
    const bool is_alone = active.size() == 1;
    const bool has_swap = is_swapped && !(is_alone && active.front() == resident);
    const double turns =
        is_alone
            ? 1
            : std::max(1.0, need * interval.value / lease / static_cast<double>(active.size()));
    const double swap = has_swap ? turns * swap_bytes / device.link.value / interval.value : 0;
    resident = active.back();
    tally.lost += std::min(1.0, swap);
    const double room = std::max(0.0, 1 - swap);
    std::vector<double> weights(demands.size(), 1);
    const std::vector<double> got = divide_by_weight(demands, weights, room);
    book(workloads, demands, demands, got, tally);
    for (const int i : active)
      if (has_latency_target(at(workloads, i).load_class) && (!is_alone || has_swap) &&
          at(got, i) >= at(demands, i) - kEnough)
        at(tally.missed, i) += 1;
  }
  return tally;
}

ModeOutcome try_time_slice(std::span<const MixedWorkload> workloads, const DeviceCapacity& device,
                           const ServiceBudget& budget) {
  const Bytes memory = memory_of(workloads);
  if (device.host_memory.value == 0)
    return {{MixMode::kTimeSlice, "the host gives no memory for it"}, {}, {}};
  if (memory > device.host_memory)
    return {
        {MixMode::kTimeSlice, lacking_memory(memory, device.host_memory) + " on the host"}, {}, {}};
  ModeOutcome best;
  for (const double lease : kLeases) {
    const Tally tally = play_leases(workloads, device, budget.interval, lease);
    const ModeCost cost = cost_of(MixMode::kTimeSlice, tally, budget);
    if (best.lease.value == 0 || cost.cost < best.cost.cost) best = {cost, Seconds{lease}, {}};
  }
  return best;
}

// Intervals in which work without a target runs: while no more than a little is expected of the
// others when it could be reclaimed.
std::vector<bool> low_intervals(std::span<const MixedWorkload> workloads, int lead) {
  std::vector<double> targets;
  for (std::size_t t = 0; t < workloads.front().demand.size(); ++t) {
    double sum = 0;
    for (const MixedWorkload& workload : workloads)
      if (has_latency_target(workload.load_class)) sum += std::max(0.0F, workload.demand[t]);
    targets.push_back(sum);
  }
  const std::vector<double> expected =
      forecast_series(targets, {.lead = lead, .quantile = kTidalQuantile});
  std::vector<bool> is_low;
  is_low.reserve(expected.size());
  for (const double demand : expected)
    is_low.push_back(demand <= kLowDemand);
  return is_low;
}

std::vector<IntervalRange> ranges_of(const std::vector<bool>& is_set) {
  std::vector<IntervalRange> ranges;
  for (std::size_t t = 0; t < is_set.size(); ++t) {
    if (!is_set[t]) continue;
    if (ranges.empty() || ranges.back().last != t) ranges.push_back({t, t});
    ranges.back().last = t + 1;
  }
  return ranges;
}

ModeOutcome try_tidal(std::span<const MixedWorkload> workloads, const DeviceCapacity& device,
                      const ServiceBudget& budget) {
  const auto has_target = [](const MixedWorkload& workload) {
    return has_latency_target(workload.load_class);
  };
  const Bytes memory = memory_of(workloads);
  if (memory > device.memory)
    return {{MixMode::kTidal, lacking_memory(memory, device.memory)}, {}, {}};
  if (std::all_of(workloads.begin(), workloads.end(), has_target))
    return {{MixMode::kTidal, "every workload has a latency target"}, {}, {}};
  const int lead =
      std::max(1, static_cast<int>(std::ceil(budget.reclaim_lead.value / budget.interval.value)));
  const std::vector<bool> is_low = low_intervals(workloads, lead);
  Tally tally = empty_tally(workloads.size());
  int leaving = 0;  // intervals until reclaimed work is gone
  int coming = 0;   // intervals until it computes again
  for (std::size_t t = 0; t < is_low.size(); ++t) {
    const bool was_low = t > 0 && is_low[t - 1];
    if (is_low[t] && !was_low) coming = lead;
    if (!is_low[t] && was_low) leaving = lead;
    std::vector<double> demands = demands_at(workloads, t);
    const bool computes = is_low[t] && coming == 0;
    for (std::size_t i = 0; i < workloads.size(); ++i) {
      if (has_target(workloads[i]) || computes || demands[i] <= 0) continue;
      tally.lost += demands[i];
      tally.working[i] += 1;
      // A checkpoint occupies the device as the work did.
      if (leaving == 0) demands[i] = 0;
    }
    const std::vector<double> needs = needs_of(demands, device.interference);
    std::vector<double> booked = demands;
    for (std::size_t i = 0; i < workloads.size(); ++i)
      if (!has_target(workloads[i]) && !computes) booked[i] = 0;
    book(workloads, booked, needs, divide(workloads, needs, true), tally);
    leaving = std::max(0, leaving - 1);
    coming = std::max(0, coming - 1);
  }
  return {cost_of(MixMode::kTidal, tally, budget), {}, ranges_of(is_low)};
}

}  // namespace

std::vector<double> divide_by_weight(std::span<const double> needs, std::span<const double> weights,
                                     double capacity) {
  std::vector<double> got(needs.size());
  std::vector<std::size_t> hungry;
  for (std::size_t i = 0; i < needs.size(); ++i)
    if (needs[i] > 0) hungry.push_back(i);
  double left = capacity;
  while (!hungry.empty() && left > 0) {
    double weight = 0;
    for (const std::size_t i : hungry)
      weight += weights[i];
    std::vector<std::size_t> still;
    double given = 0;
    for (const std::size_t i : hungry) {
      const double share = left * weights[i] / weight;
      if (needs[i] <= share) {
        got[i] = needs[i];
        given += needs[i];
      } else {
        still.push_back(i);
      }
    }
    if (still.size() == hungry.size()) {
      for (const std::size_t i : hungry)
        got[i] = left * weights[i] / weight;
      return got;
    }
    left -= given;
    hungry = std::move(still);
  }
  return got;
}

ModeOutcome try_mode(MixMode mode, std::span<const MixedWorkload> workloads,
                     const DeviceCapacity& device, const ServiceBudget& budget) {
  switch (mode) {
    case MixMode::kShared:
    case MixMode::kPreemptive:
      return try_together(mode, workloads, device, budget);
    case MixMode::kTimeSlice:
      return try_time_slice(workloads, device, budget);
    case MixMode::kTidal:
      return try_tidal(workloads, device, budget);
  }
  return {};
}

}  // namespace regatta::mixing
