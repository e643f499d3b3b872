// cluster_replay/generated_load.h: jobs that are drawn at random, for clusters that no trace
// describes.
#pragma once

#include <cstdint>
#include <vector>

#include "regatta/base/core/result.h"
#include "regatta/base/core/units.h"
#include "regatta/platform/cluster_replay/traced_job.h"
#include "regatta/platform/sched/cluster_snapshot.h"

namespace regatta::cluster_replay {

// Poisson arrivals. Sizes are powers of two of devices, each half as frequent as the one before, up
// to a quarter of the cluster; run times are log-normal. Source of the default times: the quantiles
// of Philly's jobs (Jeon et al., USENIX ATC 2019: median 13 min, heavy tail).
struct LoadShape {
  double load = 0.8;  // device time asked for, over that of the cluster; above 0
  Seconds duration;   // arrivals come from 0 to here
  Seconds run_time_median{3600};
  double run_time_log_spread = 1.5;
  Seconds checkpoint_interval{1800};
  Seconds restart{120};
  std::uint64_t seed = 1;
};

// Fails with kInvalidInput where no node has a device, or a value is out of range.
Result<std::vector<TracedJob>> generate_jobs(const std::vector<sched::ClusterNode>& nodes,
                                             const LoadShape& shape);

}  // namespace regatta::cluster_replay
