#include "regatta/platform/mixing/internal/mode_costs.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include <fmt/format.h>

#include "regatta/base/core/ids.h"
#include "regatta/platform/mixing/demand_forecast.h"
#include "regatta/platform/mixing/device_division.h"

namespace regatta::mixing {
namespace {

constexpr double kLowDemand = 0.1;  // of a device: tidal work runs while no more is expected
constexpr double kTidalQuantile = 0.95;
constexpr double kDaySeconds = 24 * 3600.0;
constexpr double kLeases[] = {10, 60, 300};  // seconds

// Counts of the intervals so far.
struct Tally {
  std::vector<double> missed;   // of each workload
  std::vector<double> working;  // intervals in which it has work
  std::vector<double> work;     // of each workload
  std::vector<double> undone;   // of it, not done in its interval
  double lost = 0;

  explicit Tally(std::size_t workloads)
      : missed(workloads), working(workloads), work(workloads), undone(workloads) {}

  void add(std::size_t workload, double amount, double left_undone) {
    working[workload] += 1;
    work[workload] += amount;
    undone[workload] += left_undone;
    lost += left_undone;
  }

  std::vector<double> shares_done() const {
    std::vector<double> shares;
    for (std::size_t i = 0; i < work.size(); ++i)
      shares.push_back(work[i] > 0 ? 1 - undone[i] / work[i] : 1);
    return shares;
  }
};

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

void set_demands(std::span<const MixedWorkload> workloads, std::size_t interval,
                 std::vector<DeviceDemand>& demands) {
  demands.clear();
  for (const MixedWorkload& workload : workloads)
    demands.push_back({std::max(0.0F, workload.demand[interval]),
                       has_latency_target(workload.load_class), workload.memory});
}

// Books what the workloads got. Lost is the work itself, without interference.
void book(std::span<const DeviceDemand> demands, const DeviceDivision& division, Tally& tally) {
  tally.lost += division.swapped;
  for (std::size_t i = 0; i < demands.size(); ++i) {
    if (demands[i].share <= 0) continue;
    tally.add(i, demands[i].share, demands[i].share * (1 - division.served[i]));
    if (demands[i].has_target && !division.is_met[i]) tally.missed[i] += 1;
  }
}

ModeOutcome try_together(MixMode mode, std::span<const MixedWorkload> workloads,
                         const DeviceCapacity& device, const ServiceBudget& budget) {
  const Bytes memory = memory_of(workloads);
  if (memory > device.memory) return {{mode, lacking_memory(memory, device.memory)}, {}, {}, {}};
  const auto has_target = [](const MixedWorkload& workload) {
    return has_latency_target(workload.load_class);
  };
  const auto targets = std::count_if(workloads.begin(), workloads.end(), has_target);
  if (budget.targets_first && mode == MixMode::kShared && targets > 0 &&
      targets < std::ssize(workloads))
    return {{mode, "work with a latency target goes first"}, {}, {}, {}};
  Tally tally(workloads.size());
  const DivisionRule rule{.mode = mode, .interference = device.interference};
  DeviceDivider divider;
  std::vector<DeviceDemand> demands;
  int resident = -1;
  for (std::size_t t = 0; t < workloads.front().demand.size(); ++t) {
    set_demands(workloads, t, demands);
    book(demands, divider.divide(demands, rule, resident), tally);
  }
  return {cost_of(mode, tally, budget), {}, {}, tally.shares_done()};
}

Tally play_leases(std::span<const MixedWorkload> workloads, const DeviceCapacity& device,
                  Seconds interval, double lease) {
  Tally tally(workloads.size());
  const DivisionRule rule{.mode = MixMode::kTimeSlice,
                          .interval = interval,
                          .lease = {lease},
                          .link = device.link,
                          .is_swapped = memory_of(workloads) > device.memory};
  DeviceDivider divider;
  std::vector<DeviceDemand> demands;
  int resident = -1;
  for (std::size_t t = 0; t < workloads.front().demand.size(); ++t) {
    set_demands(workloads, t, demands);
    book(demands, divider.divide(demands, rule, resident), tally);
  }
  return tally;
}

ModeOutcome try_time_slice(std::span<const MixedWorkload> workloads, const DeviceCapacity& device,
                           const ServiceBudget& budget) {
  const Bytes memory = memory_of(workloads);
  if (device.host_memory.value == 0)
    return {{MixMode::kTimeSlice, "the host gives no memory for it"}, {}, {}, {}};
  if (memory > device.host_memory)
    return {{MixMode::kTimeSlice, lacking_memory(memory, device.host_memory) + " on the host"},
            {},
            {},
            {}};
  ModeOutcome best;
  for (const double lease : kLeases) {
    const Tally tally = play_leases(workloads, device, budget.interval, lease);
    const ModeCost cost = cost_of(MixMode::kTimeSlice, tally, budget);
    if (best.lease.value == 0 || cost.cost < best.cost.cost)
      best = {cost, Seconds{lease}, {}, tally.shares_done()};
  }
  return best;
}

// Intervals in which work without a target runs: while no more than a little is expected of the
// others when it could be reclaimed.
std::vector<bool> low_intervals(std::span<const MixedWorkload> workloads, int lead, int day) {
  std::vector<double> targets;
  for (std::size_t t = 0; t < workloads.front().demand.size(); ++t) {
    double sum = 0;
    for (const MixedWorkload& workload : workloads)
      if (has_latency_target(workload.load_class)) sum += std::max(0.0F, workload.demand[t]);
    targets.push_back(sum);
  }
  const std::vector<double> expected =
      forecast_series(targets, {.lead = lead, .quantile = kTidalQuantile, .day = day});
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
    return {{MixMode::kTidal, lacking_memory(memory, device.memory)}, {}, {}, {}};
  if (std::all_of(workloads.begin(), workloads.end(), has_target))
    return {{MixMode::kTidal, "every workload has a latency target"}, {}, {}, {}};
  const int lead =
      std::max(1, static_cast<int>(std::ceil(budget.reclaim_lead.value / budget.interval.value)));
  const int day = std::max(1, static_cast<int>(std::lround(kDaySeconds / budget.interval.value)));
  const std::vector<bool> is_low = low_intervals(workloads, lead, day);
  Tally tally(workloads.size());
  const DivisionRule rule{.mode = MixMode::kTidal, .interference = device.interference};
  DeviceDivider divider;
  std::vector<DeviceDemand> demands;
  int resident = -1;
  int leaving = 0;  // intervals until reclaimed work is gone
  int coming = 0;   // intervals until it computes again
  for (std::size_t t = 0; t < is_low.size(); ++t) {
    const bool was_low = t > 0 && is_low[t - 1];
    if (is_low[t] && !was_low) coming = lead;
    if (!is_low[t] && was_low) leaving = lead;
    set_demands(workloads, t, demands);
    const bool computes = is_low[t] && coming == 0;
    for (std::size_t i = 0; i < workloads.size(); ++i) {
      if (demands[i].has_target || computes || demands[i].share <= 0) continue;
      tally.add(i, demands[i].share, demands[i].share);
      // A checkpoint occupies the device as the work did.
      if (leaving == 0) demands[i].share = 0;
    }
    const DeviceDivision& division = divider.divide(demands, rule, resident);
    for (std::size_t i = 0; i < workloads.size(); ++i)
      if (!demands[i].has_target && !computes) demands[i].share = 0;
    book(demands, division, tally);
    leaving = std::max(0, leaving - 1);
    coming = std::max(0, coming - 1);
  }
  return {cost_of(MixMode::kTidal, tally, budget), {}, ranges_of(is_low), tally.shares_done()};
}

}  // namespace

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
