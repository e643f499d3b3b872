// measure/summarize.h: from the samples of all devices to the rates of the cluster: those of the
// mean time over the passes and ranks of a device type, and over the pairs of a path class. Pure.
#pragma once

#include <string>
#include <vector>

#include "regatta/base/core/ids.h"
#include "regatta/base/core/result.h"
#include "regatta/base/core/units.h"
#include "regatta/model/cost/rates.h"
#include "regatta/model/topo/cluster.h"
#include "regatta/runtime/measure/measurement_schedule.h"

namespace regatta::measure {

// One loop on one device. `busy` is the time in which the device worked: processor time of the
// compute thread on a CPU. A device that is held to a share of a core works in bursts and rests, so
// that the wall time of a short loop says more about the moment of its rests than about its speed;
// its rate is work / busy times the share that it had over all its loops together.
struct DeviceSample {
  Rank rank;
  int task = 0;     // index into MeasurementSchedule::device_tasks
  double work = 0;  // operations, bytes or launches
  Seconds busy;
};

// All loops of one device, from the start of the first to the end of the last, with what lay
// between. Loops alone would not do: each ends while it works, never while it rests.
struct ShareSample {
  Rank rank;
  Seconds busy;
  Seconds wall;
};

struct PathSample {
  int task = 0;  // index into MeasurementSchedule::path_tasks
  Seconds latency;
  BytesPerSecond bandwidth;
};

struct Samples {
  std::vector<DeviceSample> devices;
  std::vector<ShareSample> shares;  // one per rank
  std::vector<PathSample> paths;
};

// The number of device samples of a complete measurement, for progress. Paths have one a task.
int device_sample_count(const MeasurementSchedule& schedule, int world_size);

// How far the passes differ: for each loop of each rank the largest minus the smallest rate over
// the middle one, and of these the median. 0 where no loop ran twice. Above some 0.1 the machine
// was doing other work.
double pass_variation(const Samples& samples);

// The rate at which the same work takes as long as at all these rates on average: n / sum(1/rate).
// A step is a sum of times: where a core is now fast and now slow, as virtual ones are, it takes
// the mean of them, which a median would put too low. REGATTA_CHECKs that there is one.
double harmonic_mean(const std::vector<double>& rates);

// The rates, without `source` and `shared_cores`: the caller knows them. Fails with kUnavailable
// when a task has no sample from any device of a type, or a pair none: names it.
Result<cost::Rates> summarize(const topo::Cluster& cluster, const MeasurementSchedule& schedule,
                              const Samples& samples);

}  // namespace regatta::measure
