#include "regatta/platform/mixing/device_assignment.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include <fmt/format.h>

#include "regatta/base/core/ids.h"
#include "regatta/base/core/stats.h"
#include "regatta/platform/mixing/interference.h"
#include "regatta/platform/mixing/internal/device_loads.h"
#include "regatta/platform/mixing/internal/elastic_samples.h"
#include "regatta/platform/packing/random_sequence.h"

namespace regatta::mixing {
namespace {

constexpr int kStaticRounds = 12;
constexpr int kStaticExchanges = 1500;
constexpr int kElasticRounds = 2;
constexpr int kElasticExchanges = 100;
constexpr int kPriceSteps = 9;
constexpr double kPriceMin = 0.5;
constexpr double kPriceMax = 200;
// The price of replay_elastic().
constexpr double kWorkloadsOfPrice = 2;  // that a missed interval of a device counts for at first
constexpr double kPriceGain = 6;         // of the price, by what was missed over the aim
constexpr double kPriceAim = 0.98;       // of the budget
constexpr double kPriceInertia = 1000;   // device intervals before the range that kept to the aim
constexpr std::size_t kKnownIntervals = 60;

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

// The device of each workload in an interval.
struct Placement {
  std::vector<int> homes;  // -1: not placed
  std::vector<bool> has_target;
};

// Adds up intervals.
class UseCounter {
 public:
  UseCounter(std::span<const MixedWorkload> workloads, const DeviceCapacity& device)
      : workloads_(workloads), k_(static_cast<float>(device.interference)) {}

  // `taken`: devices that count even if no workload is on them yet.
  void add(const Placement& placement, std::size_t interval, std::span<const int> taken = {}) {
    int most = *std::max_element(placement.homes.begin(), placement.homes.end());
    for (const int device : taken)
      most = std::max(most, device);
    std::vector<IntervalSums> sums(as_index(most + 1));
    std::vector<bool> is_taken(sums.size());
    for (const int device : taken)
      if (device >= 0) is_taken[as_index(device)] = true;
    for (std::size_t i = 0; i < workloads_.size(); ++i) {
      const float demand = workloads_[i].demand[interval];
      if (demand < 0 || placement.homes[i] < 0) continue;
      IntervalSums& sum = at(sums, placement.homes[i]);
      sum.all += demand;
      sum.all_squares += demand * demand;
      ++sum.present;
      if (!placement.has_target[i]) continue;
      sum.target += demand;
      sum.target_squares += demand * demand;
      ++sum.targets;
    }
    int devices = 0;
    for (std::size_t i = 0; i < sums.size(); ++i) {
      if (sums[i].present == 0 && !is_taken[i]) continue;
      ++devices;
      add_device(sums[i]);
    }
    use_.device_intervals += devices;
    use_.most_devices = std::max(use_.most_devices, devices);
  }

  MixingUse use() const {
    MixingUse use = use_;
    use.above_share = above_ / std::max(1.0, use_.device_intervals);
    use.missed_share = missed_ / std::max(1.0, targets_);
    use.delayed_share = waiting_ > 0 ? delayed_ / waiting_ : 0;
    return use;
  }

 private:
  void add_device(const IntervalSums& sum) {
    use_.workload_intervals += sum.present;
    targets_ += sum.targets;
    const float needed = mixed_demand(sum.all, sum.all_squares, k_);
    if (exceeds_device(needed)) above_ += 1;
    const float waiting = sum.all - sum.target;
    waiting_ += waiting;
    delayed_ += std::min(waiting, std::max(0.0F, needed - 1));
    const float occupied = std::min(1.0F, sum.all);
    if (exceeds_device(sum.target + k_ * (occupied * sum.target - sum.target_squares)))
      missed_ += sum.targets;
  }

  std::span<const MixedWorkload> workloads_;
  float k_;
  MixingUse use_;
  double above_ = 0;
  double missed_ = 0;
  double targets_ = 0;
  double waiting_ = 0;  // work without a target
  double delayed_ = 0;
};

LoadCosts costs_of(const DeviceCapacity& device, double missed_price, double move_price) {
  return {static_cast<float>(device.interference), missed_price, move_price, device.memory, false};
}

// A workload without a device, which came after the decision, has one of its own.
Placement with_newcomers(std::span<const MixedWorkload> workloads, const Placement& placement,
                         std::size_t interval, int free) {
  Placement all = placement;
  for (std::size_t i = 0; i < workloads.size(); ++i)
    if (all.homes[i] < 0 && workloads[i].demand[interval] >= 0) all.homes[i] = free++;
  return all;
}

class ElasticReplay {
 public:
  ElasticReplay(std::span<const MixedWorkload> workloads, const ElasticOptions& options,
                const DeviceCapacity& device, const ServiceBudget& budget)
      : workloads_(workloads),
        options_(options),
        device_(device),
        budget_(budget),
        forecast_(workloads, options),
        placement_{std::vector<int>(workloads.size(), -1),
                   std::vector<bool>(workloads.size(), true)},
        total_(workloads, device) {}

  MixingUse run(IntervalRange range) {
    const auto every = as_index(options_.every);
    for (std::size_t now = range.first; now < range.last; now += every)
      play({now, std::min(range.last, now + every)}, now == range.first);
    MixingUse use = total_.use();
    use.moves = moves_;
    return use;
  }

 private:
  void play(IntervalRange next, bool is_first) {
    const Placement last = std::exchange(placement_, decide(next.first));
    int free = 0;
    for (std::size_t i = 0; i < workloads_.size(); ++i) {
      free = std::max({free, last.homes[i] + 1, placement_.homes[i] + 1});
      if (last.homes[i] >= 0 && placement_.homes[i] >= 0 && last.homes[i] != placement_.homes[i])
        ++moves_;
    }
    const std::size_t moved = next.first + (is_first ? 0 : as_index(options_.move_intervals));
    for (std::size_t t = next.first; t < next.last; ++t) {
      if (t < moved)
        total_.add(with_newcomers(workloads_, last, t, free), t, placement_.homes);
      else
        total_.add(with_newcomers(workloads_, placement_, t, free), t);
    }
  }

  Placement decide(std::size_t now) const {
    std::vector<int> present;
    std::vector<int> before;
    for (int i = 0; i < std::ssize(workloads_); ++i) {
      if (at(workloads_, i).demand[now - 1] < 0) continue;
      present.push_back(i);
      before.push_back(at(placement_.homes, i));
    }
    std::vector<LoadSamples> loads = forecast_.samples(present, now);
    if (options_.has_hindsight) look_ahead(present, now, loads);
    LoadCosts costs = costs_of(device_, price(), options_.move_price);
    // An oracle's samples happen at once; and how long workloads wait, those that may, takes joint
    // samples to tell.
    costs.are_independent = !options_.has_hindsight && !options_.spikes_may_wait;
    DeviceLoads devices(loads, before, costs);
    devices.improve(kElasticRounds, kElasticExchanges, options_.seed + now);
    Placement placement{std::vector<int>(workloads_.size(), -1), placement_.has_target};
    for (std::size_t i = 0; i < present.size(); ++i) {
      at(placement.homes, present[i]) = devices.homes()[i];
      placement.has_target[as_index(present[i])] = loads[i].has_target;
    }
    return placement;
  }

  double price() const {
    const MixingUse use = total_.use();
    const double aim = kPriceAim * budget_.missed_share;
    const double missed = options_.spikes_may_wait ? use.missed_share : use.above_share;
    const double share = (missed * use.device_intervals + aim * kPriceInertia) /
                         (use.device_intervals + kPriceInertia);
    const double start = budget_.missed_price * (options_.spikes_may_wait ? 1 : kWorkloadsOfPrice);
    const double over = aim > 0 ? share / aim - 1 : 1;
    return std::clamp(start * std::exp(kPriceGain * over), kPriceMin, kPriceMax);
  }

  // The intervals themselves in which the decision holds.
  void look_ahead(std::span<const int> present, std::size_t now,
                  std::vector<LoadSamples>& loads) const {
    for (std::size_t i = 0; i < present.size(); ++i) {
      const std::vector<float>& demand = at(workloads_, present[i]).demand;
      loads[i].demand.clear();
      for (int t = 0; t < options_.every; ++t) {
        const std::size_t then = now + as_index(options_.move_intervals + t);
        loads[i].demand.push_back(std::max(0.0F, demand[std::min(then, demand.size() - 1)]));
      }
    }
  }

  std::span<const MixedWorkload> workloads_;
  const ElasticOptions& options_;
  const DeviceCapacity& device_;
  const ServiceBudget& budget_;
  ElasticForecast forecast_;
  Placement placement_;
  UseCounter total_;
  int moves_ = 0;
};

}  // namespace

std::vector<int> assign_by_percentile(std::span<const MixedWorkload> workloads, IntervalRange past,
                                      double percentile, const DeviceCapacity& device) {
  std::vector<double> needs;
  for (const MixedWorkload& workload : workloads) {
    std::vector<float> values;
    for (std::size_t t = past.first; t < past.last; ++t)
      if (workload.demand[t] >= 0) values.push_back(workload.demand[t]);
    std::sort(values.begin(), values.end());
    needs.push_back(values.empty() ? 1 : values[quantile_place(values.size(), percentile)]);
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
  if (workloads.empty()) return {};
  const Placement placement{{homes.begin(), homes.end()},
                            std::vector<bool>(workloads.size(), true)};
  UseCounter counter(workloads, device);
  for (std::size_t t = range.first; t < range.last; ++t)
    counter.add(placement, t);
  return counter.use();
}

Result<MixingUse> replay_elastic(std::span<const MixedWorkload> workloads, IntervalRange range,
                                 const ElasticOptions& options, const DeviceCapacity& device,
                                 const ServiceBudget& budget) {
  REGATTA_TRY_DO(check_range(workloads, range));
  if (options.every < 1 || options.samples < 1 || options.histories < 1 ||
      options.move_intervals < 0 || options.move_intervals >= options.every ||
      range.first < kKnownIntervals)
    return Error{
        Code::kInvalidInput,
        fmt::format("elastic options: give at least 1 interval between decisions, 1 sample, "
                    "1 history, moves that take fewer intervals than lie between decisions, "
                    "and a range that begins after {} intervals",
                    kKnownIntervals)};
  return ElasticReplay(workloads, options, device, budget).run(range);
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
