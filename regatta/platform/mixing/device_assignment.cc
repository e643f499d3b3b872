#include "regatta/platform/mixing/device_assignment.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include <fmt/format.h>

#include "regatta/base/core/ids.h"
#include "regatta/platform/mixing/interference.h"
#include "regatta/platform/mixing/internal/device_loads.h"
#include "regatta/platform/mixing/internal/elastic_samples.h"
#include "regatta/platform/packing/random_sequence.h"

namespace regatta::mixing {
namespace {

constexpr int kStaticRounds = 12;
constexpr int kStaticExchanges = 1500;
constexpr int kElasticRounds = 2;
constexpr int kPriceSteps = 9;
constexpr double kPriceMin = 0.5;
constexpr double kPriceMax = 200;
constexpr double kPriceGain = 10;  // of the price, by the share that was above the budget

Status check_range(std::span<const MixedWorkload> workloads, IntervalRange range) {
  if (workloads.empty()) return Error{Code::kInvalidInput, "no workload; give at least one"};
  for (const MixedWorkload& workload : workloads)
    if (range.first >= range.last || range.last > workload.demand.size())
      return Error{Code::kInvalidInput,
                   fmt::format("workload {}: {} intervals, of which {} to {} are asked for; give "
                               "series that hold a range of at least one",
                               workload.name, workload.demand.size(), range.first, range.last)};
  return {};
}

bool exists_in(const MixedWorkload& workload, IntervalRange range) {
  const auto begin = workload.demand.begin();
  return std::any_of(begin + static_cast<std::ptrdiff_t>(range.first),
                     begin + static_cast<std::ptrdiff_t>(range.last),
                     [](float demand) { return demand >= 0; });
}

std::vector<LoadSamples> joint_samples(std::span<const MixedWorkload> workloads,
                                       IntervalRange range, std::uint64_t seed) {
  std::vector<LoadSamples> loads;
  packing::RandomSequence random(seed);
  std::vector<std::size_t> known;
  for (std::size_t i = 0; i < workloads.size(); ++i)
    if (exists_in(workloads[i], range)) known.push_back(i);
  for (std::size_t i = 0; i < workloads.size(); ++i) {
    std::size_t source = i;
    if (!exists_in(workloads[i], range) && !known.empty())
      source = known[random.below(known.size())];
    LoadSamples load{{}, true, workloads[i].memory};
    for (std::size_t t = range.first; t < range.last; ++t)
      load.demand.push_back(std::max(0.0F, workloads[source].demand[t]));
    loads.push_back(std::move(load));
  }
  return loads;
}

// Sums over the workloads of a device in one interval.
struct IntervalSums {
  float all = 0;
  float all_squares = 0;
  float target = 0;
  float target_squares = 0;
  int present = 0;
  int targets = 0;
};

struct UseCounts {
  double above = 0;
  double missed = 0;
  double targets = 0;
  double waiting = 0;  // work without a target
  double delayed = 0;
};

// Adds one interval to the use. `homes` of workloads that are not placed: -1.
void add_interval(std::span<const MixedWorkload> workloads, std::span<const int> homes,
                  const std::vector<bool>& has_target, std::size_t interval, float k,
                  MixingUse& use, UseCounts& counts) {
  const int most = homes.empty() ? -1 : *std::max_element(homes.begin(), homes.end());
  std::vector<IntervalSums> sums(as_index(most + 1));
  for (std::size_t i = 0; i < workloads.size(); ++i) {
    const float demand = workloads[i].demand[interval];
    if (demand < 0 || homes[i] < 0) continue;
    IntervalSums& sum = at(sums, homes[i]);
    sum.all += demand;
    sum.all_squares += demand * demand;
    ++sum.present;
    if (!has_target[i]) continue;
    sum.target += demand;
    sum.target_squares += demand * demand;
    ++sum.targets;
  }
  int devices = 0;
  for (const IntervalSums& sum : sums) {
    if (sum.present == 0) continue;
    ++devices;
    use.workload_intervals += sum.present;
    counts.targets += sum.targets;
    const float needed = mixed_demand(sum.all, sum.all_squares, k);
    if (exceeds_device(needed)) counts.above += 1;
    const float waiting = sum.all - sum.target;
    counts.waiting += waiting;
    counts.delayed += std::min(waiting, std::max(0.0F, needed - 1));
    const float occupied = std::min(1.0F, sum.all);
    if (exceeds_device(sum.target + k * (occupied * sum.target - sum.target_squares)))
      counts.missed += sum.targets;
  }
  use.device_intervals += devices;
  use.most_devices = std::max(use.most_devices, devices);
}

void finish(MixingUse& use, const UseCounts& counts) {
  use.above_share = use.device_intervals > 0 ? counts.above / use.device_intervals : 0;
  use.missed_share = counts.targets > 0 ? counts.missed / counts.targets : 0;
  use.delayed_share = counts.waiting > 0 ? counts.delayed / counts.waiting : 0;
}

LoadCosts costs_of(const DeviceCapacity& device, double missed_price, double move_price) {
  return {static_cast<float>(device.interference), missed_price, move_price, device.memory};
}

std::vector<int> elastic_homes(std::span<const MixedWorkload> workloads,
                               const std::vector<int>& homes, std::size_t now,
                               const ElasticOptions& options, const LoadCosts& costs,
                               std::vector<bool>& has_target) {
  std::vector<int> present;
  std::vector<int> before;
  for (int i = 0; i < std::ssize(workloads); ++i) {
    if (at(workloads, i).demand[now - 1] < 0) continue;
    present.push_back(i);
    before.push_back(at(homes, i));
  }
  std::vector<LoadSamples> loads = elastic_samples(workloads, present, now, options);
  if (options.has_hindsight) {
    const std::size_t last =
        std::min(workloads.front().demand.size(), now + as_index(options.every));
    for (std::size_t i = 0; i < present.size(); ++i) {
      const MixedWorkload& workload = at(workloads, present[i]);
      loads[i].demand.clear();
      for (std::size_t t = now; t < last; ++t)
        loads[i].demand.push_back(std::max(0.0F, workload.demand[t]));
    }
  }
  DeviceLoads devices(loads, before, costs);
  devices.improve(kElasticRounds, 0, options.seed);
  std::vector<int> next(workloads.size(), -1);
  for (std::size_t i = 0; i < present.size(); ++i) {
    at(next, present[i]) = devices.homes()[i];
    has_target[as_index(present[i])] = loads[i].has_target;
  }
  return next;
}

}  // namespace

std::vector<int> assign_by_percentile(std::span<const MixedWorkload> workloads, IntervalRange past,
                                      double percentile, const DeviceCapacity& device) {
  std::vector<double> needs;
  for (const MixedWorkload& workload : workloads) {
    std::vector<float> values;
    for (std::size_t t = past.first; t < past.last; ++t)
      if (workload.demand[t] >= 0) values.push_back(workload.demand[t]);
    std::sort(values.begin(), values.end());
    needs.push_back(values.empty() ? 1
                                   : values[static_cast<std::size_t>(
                                         percentile * static_cast<double>(values.size() - 1))]);
  }
  std::vector<int> order(workloads.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](int a, int b) { return at(needs, a) > at(needs, b); });
  std::vector<int> homes(workloads.size(), -1);
  std::vector<std::pair<double, Bytes>> taken;
  for (const int load : order) {
    const double need = at(needs, load);
    const Bytes memory = at(workloads, load).memory;
    auto fit = std::find_if(taken.begin(), taken.end(), [&](const auto& used) {
      return used.first + need <= 1 && used.second + memory <= device.memory;
    });
    if (fit == taken.end()) fit = taken.insert(taken.end(), {0, Bytes{}});
    fit->first += need;
    fit->second += memory;
    at(homes, load) = static_cast<int>(fit - taken.begin());
  }
  return homes;
}

Result<std::vector<int>> assign_jointly(std::span<const MixedWorkload> workloads,
                                        IntervalRange past, const DeviceCapacity& device,
                                        const ServiceBudget& budget, std::uint64_t seed) {
  REGATTA_TRY_DO(check_range(workloads, past));
  const std::vector<LoadSamples> loads = joint_samples(workloads, past, seed);
  const std::vector<int> nowhere(workloads.size(), -1);
  double low = std::log(kPriceMin);
  double high = std::log(kPriceMax);
  std::vector<int> best;
  int fewest = 0;
  for (int step = 0; step < kPriceSteps; ++step) {
    const double middle = (low + high) / 2;
    DeviceLoads devices(loads, nowhere, costs_of(device, std::exp(middle), 0));
    devices.improve(kStaticRounds, kStaticExchanges, seed);
    if (devices.missed_share() > budget.missed_share) {
      low = middle;
      if (!best.empty() || step + 1 < kPriceSteps) continue;
    } else {
      high = middle;
      if (!best.empty() && devices.devices_in_use() >= fewest) continue;
    }
    best = devices.homes();
    fewest = devices.devices_in_use();
  }
  return best;
}

MixingUse judge_assignment(std::span<const MixedWorkload> workloads, std::span<const int> homes,
                           IntervalRange range, const DeviceCapacity& device) {
  MixingUse use;
  UseCounts counts;
  const std::vector<bool> has_target(workloads.size(), true);
  for (std::size_t t = range.first; t < range.last; ++t)
    add_interval(workloads, homes, has_target, t, static_cast<float>(device.interference), use,
                 counts);
  finish(use, counts);
  return use;
}

Result<MixingUse> replay_elastic(std::span<const MixedWorkload> workloads, IntervalRange range,
                                 const ElasticOptions& options, const DeviceCapacity& device,
                                 const ServiceBudget& budget) {
  REGATTA_TRY_DO(check_range(workloads, range));
  if (options.every < 1 || options.window < 1 || options.samples < 1 ||
      !(options.pooled_share >= 0 && options.pooled_share <= 1) ||
      range.first < as_index(options.window))
    return Error{Code::kInvalidInput,
                 "elastic options: give at least 1 interval between decisions, 1 sample, a window "
                 "that ends before the range, and a pooled share from 0 to 1"};
  MixingUse use;
  UseCounts counts;
  double price = budget.missed_price;
  std::vector<int> homes(workloads.size(), -1);
  std::vector<bool> has_target(workloads.size(), true);
  const auto every = as_index(options.every);
  for (std::size_t now = range.first; now < range.last; now += every) {
    const std::vector<int> next = elastic_homes(
        workloads, homes, now, options, costs_of(device, price, options.move_price), has_target);
    for (std::size_t i = 0; i < next.size(); ++i)
      if (homes[i] >= 0 && next[i] >= 0 && homes[i] != next[i]) ++use.moves;
    homes = next;
    const double devices_before = use.device_intervals;
    const double above_before = options.spikes_may_wait ? counts.missed : counts.above;
    const double targets_before = counts.targets;
    for (std::size_t t = now; t < std::min(range.last, now + every); ++t) {
      // A workload that comes between two decisions has a device of its own until the next one.
      std::vector<int> placed = homes;
      int free = *std::max_element(homes.begin(), homes.end()) + 1;
      for (std::size_t i = 0; i < placed.size(); ++i)
        if (placed[i] < 0 && workloads[i].demand[t] >= 0) placed[i] = free++;
      add_interval(workloads, placed, has_target, t, static_cast<float>(device.interference), use,
                   counts);
    }
    const double above =
        options.spikes_may_wait
            ? (counts.missed - above_before) / (counts.targets - targets_before)
            : (counts.above - above_before) / (use.device_intervals - devices_before);
    price = std::clamp(price * std::exp(kPriceGain * (above - budget.missed_share)), kPriceMin,
                       kPriceMax);
  }
  finish(use, counts);
  return use;
}

double most_workloads_per_device(std::span<const MixedWorkload> workloads, IntervalRange range,
                                 double share, bool is_elastic) {
  std::vector<double> totals;
  double present = 0;
  for (std::size_t t = range.first; t < range.last; ++t) {
    double total = 0;
    for (const MixedWorkload& workload : workloads) {
      total += std::max(0.0F, workload.demand[t]);
      present += workload.demand[t] >= 0 ? 1 : 0;
    }
    totals.push_back(total);
  }
  const auto intervals = static_cast<double>(totals.size());
  double devices = 0;
  if (is_elastic) {
    for (const double total : totals)
      devices += std::max(1.0, std::ceil(total));
  } else {
    std::sort(totals.begin(), totals.end());
    const auto left_out = static_cast<std::size_t>(share * intervals);
    devices = intervals * std::max(1.0, std::ceil(totals[totals.size() - 1 - left_out]));
  }
  return present / devices;
}

}  // namespace regatta::mixing
