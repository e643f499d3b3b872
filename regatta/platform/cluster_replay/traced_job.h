// cluster_replay/traced_job.h: a job of a trace: what its user asked for, how long it ran, and what
// it did on its devices.
#pragma once

#include <string>
#include <vector>

#include "regatta/base/core/units.h"
#include "regatta/platform/sched/job_request.h"

namespace regatta::cluster_replay {

// Demand over time in equal intervals, which a scheduler does not know: it sees Role::duty and the
// history of a service.
struct TracedDemand {
  Seconds interval{};          // above 0 where the job has one
  std::vector<float> amounts;  // not negative; 0 after the last
  // So many of them were before the job was submitted, and are known.
  int past = 0;
  // Above 0: the amounts are the demand on a service, of which a replica serves so much; it takes
  // `full_share` of its devices then. Else they are shares of each of the job's devices.
  double per_replica = 0;
  double full_share = 1;

  bool is_known() const { return interval.value > 0; }
  bool is_service() const { return per_replica > 0; }
};

// `run_time` > 0 is the time on its smallest size without interruption, which a scheduler does not
// know. A job with a demand ends so long after its submission, whatever it got.
struct TracedJob {
  sched::JobRequest request;
  Seconds run_time;
  TracedDemand demand{};
};

// A role for a job of so many whole devices on servers of `server_devices`: one replica where they
// fit on a server, else equal replicas on as many servers as that takes.
inline sched::Role whole_device_role(int devices, int server_devices) {
  const int replicas = (devices + server_devices - 1) / server_devices;
  sched::Role role;
  role.name = "worker";
  role.replicas_min = replicas;
  role.replicas_max = replicas;
  role.devices = (devices + replicas - 1) / replicas;
  return role;
}

}  // namespace regatta::cluster_replay
