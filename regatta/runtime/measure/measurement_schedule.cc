#include "regatta/runtime/measure/measurement_schedule.h"

#include <set>
#include <tuple>
#include <utility>

#include <fmt/core.h>

namespace regatta::measure {
namespace {

using namespace regatta::literals;
using workload::Precision;

// Sizes of the grid of products: tokens, hidden sizes and their tensor-parallel parts appear in
// each of the three places, because forward and backward permute them.
constexpr int kSizes[] = {64, 128, 256, 512, 1024};
constexpr int kCoarseSizes[] = {64, 256, 1024};
// Attention: sequence length, and the width of one head.
constexpr int kSequences[] = {64, 128, 256, 512};
constexpr int kCoarseSequences[] = {128, 512};
constexpr int kHeads[] = {16, 32, 64};
constexpr int kCoarseHeads[] = {16, 64};
constexpr int kHeadsAtOnce = 8;

// Tensors of the pointwise operators: one micro-batch of a middle-sized block, larger than the
// caches nearest to the core, as in training.
constexpr int kTokens = 512;
constexpr int kHidden = 512;
constexpr int kFfnHidden = 2048;
constexpr int kScores = 256;  // softmax runs over kHeadsAtOnce matrices of kScores x kScores

constexpr int kPairsPerClass = 8;

void add_products(MeasurementSchedule& schedule, bool coarse, Precision precision) {
  const auto add_grid = [&](const auto& sizes) {
    for (const int m : sizes) {
      for (const int n : sizes) {
        for (const int k : sizes)
          schedule.device_tasks.push_back({TaskKind::kProduct, precision, m, n, k});
      }
    }
  };
  const auto add_attention = [&](const auto& sequences, const auto& heads) {
    for (const int sequence : sequences) {
      for (const int head : heads) {
        if (sequence <= head) continue;
        schedule.device_tasks.push_back(
            {TaskKind::kBatched, precision, sequence, sequence, head, kHeadsAtOnce});
        schedule.device_tasks.push_back(
            {TaskKind::kBatched, precision, sequence, head, sequence, kHeadsAtOnce});
      }
    }
  };
  if (coarse) {
    add_attention(kCoarseSequences, kCoarseHeads);
    add_grid(kCoarseSizes);
  } else {
    add_attention(kSequences, kHeads);
    add_grid(kSizes);
  }
}

// A shape that attention computes is measured as attention computes it, in batches.
void drop_repeated_shapes(std::vector<DeviceTask>& tasks) {
  std::set<std::tuple<Precision, int, int, int>> seen;
  std::vector<DeviceTask> kept;
  for (const DeviceTask& task : tasks) {
    if (seen.emplace(task.precision, task.m, task.n, task.k).second) kept.push_back(task);
  }
  tasks = std::move(kept);
}

void add_pointwise(MeasurementSchedule& schedule, Precision precision) {
  for (const cost::PointwiseOp op : cost::kPointwiseOps) {
    DeviceTask task{TaskKind::kPointwise, precision, kTokens, kHidden, 0, 1, op};
    if (op == cost::PointwiseOp::kGelu || op == cost::PointwiseOp::kGeluBackward ||
        op == cost::PointwiseOp::kBiasGradient)
      task.n = kFfnHidden;
    if (op == cost::PointwiseOp::kSoftmax || op == cost::PointwiseOp::kSoftmaxBackward) {
      task.batch = kHeadsAtOnce;
      task.m = task.n = kScores;
    }
    // The optimizer works on fp32 master values in every precision.
    if (op == cost::PointwiseOp::kAdam && precision != Precision::kFp32) continue;
    schedule.device_tasks.push_back(task);
  }
}

// Pairs of each class, at most `limit`, on distinct pairs of servers where there are enough: where
// connections are hashed onto equal-cost links, one pair may be lucky.
std::vector<PathTask> path_tasks(const topo::Cluster& cluster, int limit) {
  std::vector<PathTask> tasks;
  const std::vector<topo::DeviceRef> devices = topo::all_devices(cluster);
  for (const cost::ClassPair& first : cost::representative_pairs(cluster)) {
    std::set<std::pair<ServerId, ServerId>> used;
    for (std::size_t from = 0; from < devices.size(); ++from) {
      for (std::size_t to = 0; to < devices.size(); ++to) {
        if (from == to || static_cast<int>(used.size()) == limit) continue;
        if (cost::path_class(cluster, devices[from], devices[to]) != first.path) continue;
        if (!used.emplace(devices[from].server, devices[to].server).second) continue;
        tasks.push_back({first.path, Rank{static_cast<int>(from)}, Rank{static_cast<int>(to)}});
      }
    }
  }
  return tasks;
}

}  // namespace

int layouts_of(const DeviceTask& task) {
  if (task.kind == TaskKind::kBatched) return task.k < task.n ? 1 : 2;
  return 3;
}

double work_of_round(const DeviceTask& task) {
  const double elements = static_cast<double>(task.batch) * task.m * task.n;
  const double element_size = workload::bytes_per_element(task.precision);
  switch (task.kind) {
    case TaskKind::kProduct:
    case TaskKind::kBatched:
      return layouts_of(task) * 2.0 * elements * task.k;
    case TaskKind::kCopy:
      return 2 * elements * element_size;
    case TaskKind::kOverhead:
      return 1;
    case TaskKind::kPointwise:
      return cost::pointwise_bytes(task.op, elements, task.precision);
  }
  return 0;
}

std::string to_string(const DeviceTask& task) {
  const std::string precision = workload::to_string(task.precision);
  switch (task.kind) {
    case TaskKind::kProduct:
      return fmt::format("product {} x {} x {} {}", task.m, task.n, task.k, precision);
    case TaskKind::kBatched:
      return fmt::format("{} products {} x {} x {} {}", task.batch, task.m, task.n, task.k,
                         precision);
    case TaskKind::kPointwise:
      return fmt::format("{} {}", cost::to_string(task.op), precision);
    case TaskKind::kCopy:
      return "copy";
    case TaskKind::kOverhead:
      return "launch";
  }
  return "unknown";
}

MeasurementSchedule make_measurement_schedule(const topo::Cluster& cluster,
                                              const MeasurementOptions& options) {
  MeasurementSchedule schedule;
  add_pointwise(schedule, Precision::kFp32);
  add_pointwise(schedule, Precision::kBf16);
  schedule.device_tasks.push_back({TaskKind::kCopy, Precision::kFp32, 4096, 2048});
  schedule.device_tasks.push_back({TaskKind::kOverhead, Precision::kFp32, 1, 8});
  MeasurementSchedule products;
  add_products(products, options.quick, Precision::kFp32);
  add_products(products, true, Precision::kBf16);
  drop_repeated_shapes(products.device_tasks);
  schedule.device_tasks.insert(schedule.device_tasks.end(), products.device_tasks.begin(),
                               products.device_tasks.end());
  schedule.path_tasks = path_tasks(cluster, options.quick ? 1 : kPairsPerClass);
  schedule.passes = 3;
  schedule.time_per_task = 30.0_ms;
  schedule.round_trips = 200;
  schedule.transfers = 3;
  // Filling and draining the queues of a path, 40 ms per direction in a lab, must count little.
  schedule.transfer_time = 800.0_ms;
  schedule.transfer_size_min = 1_MiB;
  schedule.transfer_size_max = 64_MiB;
  return schedule;
}

}  // namespace regatta::measure
