// measure/measurement_schedule.h: what `regatta measure` measures on a cluster: products, pointwise
// operators and copies on every device at once, then one pair of devices after another. Pure: the
// same cluster and options give the same schedule.
#pragma once

#include <string>
#include <vector>

#include "regatta/base/core/ids.h"
#include "regatta/base/core/units.h"
#include "regatta/model/cost/rates.h"
#include "regatta/model/topo/cluster.h"
#include "regatta/model/workload/model.h"

namespace regatta::measure {

enum class TaskKind {
  kProduct,    // C[m,n] = A[m,k] B[k,n] in the three layouts of training: A B', A B, A' B
  kBatched,    // `batch` at once, as attention does: A B' when k < n, otherwise A B and A' B
  kPointwise,  // `op` over a tensor of m rows and n columns
  kCopy,       // a tensor of m rows and n columns onto another, larger than the caches
  kOverhead,   // one operator on a handful of elements: what a launch costs
};

// One loop that every device runs at the same time.
struct DeviceTask {
  TaskKind kind = TaskKind::kProduct;
  workload::Precision precision = workload::Precision::kFp32;
  int m = 0;
  int n = 0;
  int k = 0;
  int batch = 1;
  cost::PointwiseOp op = cost::PointwiseOp::kAdd;
};

// The layouts of a product task: how many products (times batch) one round computes.
int layouts_of(const DeviceTask& task);

// The work of one round of a task: floating-point operations (products), bytes as
// cost::pointwise_bytes() counts them (pointwise), read and written (copy), or launches (overhead).
double work_of_round(const DeviceTask& task);

// "product 256 x 1024 x 256 fp32": for progress and messages.
std::string to_string(const DeviceTask& task);

// Messages between two ranks while all the others are silent.
struct PathTask {
  cost::PathClass path = cost::PathClass::kSameServer;
  Rank from;
  Rank to;
};

struct MeasurementSchedule {
  std::vector<DeviceTask> device_tasks;
  std::vector<PathTask> path_tasks;
  // The machine's speed drifts from second to second, so that the list of loops is run several
  // times over: the mean over the passes is a rate of the whole measurement, not of a moment.
  int passes = 1;
  Seconds time_per_task;    // each loop of a pass lasts at least this long, and one round
  int round_trips = 0;      // of 8 bytes, per pair
  int transfers = 0;        // large messages, per pair
  Seconds transfer_time;    // about how long one of them should take
  Bytes transfer_size_min;  // and how large it is at least and at most
  Bytes transfer_size_max;
};

struct MeasurementOptions {
  bool quick =
      false;  // a coarse grid of products and one pair per class: about a third of the time
};

// Rank = position in topo::all_devices(). Requires a validated cluster.
MeasurementSchedule make_measurement_schedule(const topo::Cluster& cluster,
                                              const MeasurementOptions& options);

}  // namespace regatta::measure
