// cluster_replay/demand_tables.h: jobs with a demand over time, from public traces of GPU use and
// of requests. Source: github.com/alibaba/clusterdata, cluster-trace-v2026-GenAI.
//
// Each function fails with kInvalidInput, a sentence that names `file`, line, column and remedy.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "regatta/base/core/result.h"
#include "regatta/base/core/units.h"
#include "regatta/platform/cluster_replay/traced_job.h"

namespace regatta::cluster_replay {

struct DemandTableOptions {
  // The first part of a trace, which is known when the replay begins: time 0 is its end.
  Seconds past{6 * 3600.0};
  int pod_memory_mib = 8 * 1024;  // device memory of a pod or a replica: the traces do not say it
  // Replicas that serve the highest minute of a service after the past, and the share of a device
  // that a replica takes then.
  int service_replicas = 20;
  double service_full_share = 0.8;
  Seconds restart{60};  // of a pod or a replica
};

// A job of one device for each pod that is there after the past: columns as
// mixing::read_duty_trace() has them; where a pod has no sample it needs nothing. The duty profile
// of a pod, and its class, are those of its own past (mixing/mixed_workload.h): intermittent with
// short spikes or a period, else online. A pod without a past has the profile of all pods' past,
// and is online. By rising time of submission.
Result<std::vector<TracedJob>> read_duty_jobs(std::string_view text, const std::string& file,
                                              const DemandTableOptions& options);

// A service for each type of requests: columns as mixing::read_requests() has them. It has
// `service_replicas` from begin to end, and says its demand: a policy that sizes services may give
// it fewer, at least one.
Result<std::vector<TracedJob>> read_service_jobs(std::string_view text, const std::string& file,
                                                 const DemandTableOptions& options);

}  // namespace regatta::cluster_replay
