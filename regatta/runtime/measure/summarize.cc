#include "regatta/runtime/measure/summarize.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

#include <fmt/core.h>

#include "regatta/base/core/result.h"
#include "regatta/base/core/stats.h"

namespace regatta::measure {
namespace {

// Per device type and task: a rate per rank and pass, in work per second of wall time.
using RatesByTask = std::map<std::string, std::vector<std::vector<double>>>;

// Busy time over wall time of each rank: the share of a core that its device really had; 0 for a
// rank that did not report it.
std::vector<double> shares_of(const Samples& samples, std::size_t world_size) {
  std::vector<double> shares(world_size);
  for (const ShareSample& sample : samples.shares) {
    if (sample.rank.is_valid() && sample.rank.index() < world_size && sample.wall.value > 0)
      shares[sample.rank.index()] = sample.busy / sample.wall;
  }
  return shares;
}

RatesByTask rates_by_task(const topo::Cluster& cluster, const MeasurementSchedule& schedule,
                          const Samples& samples) {
  const std::vector<topo::DeviceRef> devices = topo::all_devices(cluster);
  const std::vector<double> shares = shares_of(samples, devices.size());
  RatesByTask rates;
  for (const topo::DeviceRef device : devices)
    rates[cluster.type_of(device.server).device.name].resize(schedule.device_tasks.size());
  for (const DeviceSample& sample : samples.devices) {
    const std::size_t rank = sample.rank.index();
    const auto task = static_cast<std::size_t>(sample.task);
    if (rank >= devices.size() || task >= schedule.device_tasks.size()) continue;
    if (sample.busy.value <= 0 || sample.work <= 0 || shares[rank] <= 0) continue;
    rates[cluster.type_of(devices[rank].server).device.name][task].push_back(
        sample.work / sample.busy.value * shares[rank]);
  }
  return rates;
}

// The bytes of all pointwise operators of a block over their time: the rate of an operator that was
// not measured by itself. Adam is not part of a block.
BytesPerSecond common_bandwidth(const MeasurementSchedule& schedule,
                                const std::vector<double>& rates) {
  double bytes = 0;
  double time = 0;
  for (std::size_t i = 0; i < rates.size(); ++i) {
    const DeviceTask& task = schedule.device_tasks[i];
    if (task.kind != TaskKind::kPointwise || task.op == cost::PointwiseOp::kAdam ||
        task.precision != workload::Precision::kFp32)
      continue;
    bytes += work_of_round(task);
    time += work_of_round(task) / rates[i];
  }
  return {time > 0 ? bytes / time : 0};
}

cost::DeviceRates device_rates(const MeasurementSchedule& schedule,
                               const std::vector<double>& rates) {
  cost::DeviceRates device;
  for (std::size_t i = 0; i < rates.size(); ++i) {
    const DeviceTask& task = schedule.device_tasks[i];
    switch (task.kind) {
      case TaskKind::kProduct:
      case TaskKind::kBatched:
        device.matmul.push_back({task.m, task.n, task.k, task.precision, {rates[i]}});
        break;
      case TaskKind::kPointwise:
        device.pointwise.push_back({task.op, task.precision, {rates[i]}});
        break;
      case TaskKind::kCopy:
        device.copy_bandwidth = {rates[i]};
        break;
      case TaskKind::kOverhead:
        device.operator_overhead = {1 / rates[i]};
        break;
    }
  }
  device.pointwise_bandwidth = common_bandwidth(schedule, rates);
  return device;
}

Result<std::vector<cost::PathRates>> path_rates(const topo::Cluster& cluster,
                                                const MeasurementSchedule& schedule,
                                                const Samples& samples) {
  struct Found {
    std::vector<double> latencies;
    std::vector<double> bandwidths;
    BytesPerSecond described;
  };
  std::map<cost::PathClass, Found> found;
  const std::vector<topo::DeviceRef> devices = topo::all_devices(cluster);
  const topo::Graph graph = topo::build_graph(cluster);
  for (const PathTask& task : schedule.path_tasks) {
    Found& one = found[task.path];
    if (one.described.value > 0) continue;
    REGATTA_TRY(described, cost::described_bandwidth(cluster, graph, devices[task.from.index()],
                                                     devices[task.to.index()]));
    one.described = described;
  }
  for (const PathSample& sample : samples.paths) {
    const auto task = static_cast<std::size_t>(sample.task);
    if (task >= schedule.path_tasks.size()) continue;
    Found& one = found[schedule.path_tasks[task].path];
    one.latencies.push_back(sample.latency.value);
    one.bandwidths.push_back(sample.bandwidth.value);
  }
  std::vector<cost::PathRates> paths;
  for (auto& [path, one] : found) {
    if (one.latencies.empty()) {
      return Error{Code::kUnavailable,
                   fmt::format("path {}: no pair of devices reported a measurement; run again",
                               cost::to_string(path))};
    }
    paths.push_back({.path = path,
                     .latency = {median(std::move(one.latencies))},
                     .bandwidth = {harmonic_mean(one.bandwidths)},
                     .described = one.described});
  }
  return paths;
}

}  // namespace

int device_sample_count(const MeasurementSchedule& schedule, int world_size) {
  return static_cast<int>(schedule.device_tasks.size()) * schedule.passes * world_size;
}

double harmonic_mean(const std::vector<double>& rates) {
  REGATTA_CHECK(!rates.empty());
  double time = 0;
  for (const double rate : rates)
    time += 1 / rate;
  return static_cast<double>(rates.size()) / time;
}

double pass_variation(const Samples& samples) {
  std::map<std::pair<Rank, int>, std::vector<double>> rates;
  for (const DeviceSample& sample : samples.devices) {
    if (sample.busy.value <= 0 || sample.work <= 0) continue;
    rates[{sample.rank, sample.task}].push_back(sample.work / sample.busy.value);
  }
  std::vector<double> spreads;
  for (const auto& [loop, passes] : rates) {
    if (passes.size() < 2) continue;
    const auto [smallest, largest] = std::minmax_element(passes.begin(), passes.end());
    spreads.push_back((*largest - *smallest) / median(passes));
  }
  return spreads.empty() ? 0 : median(std::move(spreads));
}

Result<cost::Rates> summarize(const topo::Cluster& cluster, const MeasurementSchedule& schedule,
                              const Samples& samples) {
  cost::Rates rates;
  for (auto& [type, by_task] : rates_by_task(cluster, schedule, samples)) {
    std::vector<double> mean_rates;
    for (std::size_t task = 0; task < by_task.size(); ++task) {
      if (by_task[task].empty()) {
        return Error{Code::kUnavailable,
                     fmt::format("device type {}: no device reported \"{}\"; run again", type,
                                 to_string(schedule.device_tasks[task]))};
      }
      mean_rates.push_back(harmonic_mean(by_task[task]));
    }
    rates.devices[type] = device_rates(schedule, mean_rates);
  }
  REGATTA_TRY(paths, path_rates(cluster, schedule, samples));
  rates.paths = std::move(paths);
  return rates;
}

}  // namespace regatta::measure
