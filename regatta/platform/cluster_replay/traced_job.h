// cluster_replay/traced_job.h: a job of a trace: what its user asked for, and how long it ran.
#pragma once

#include <string>
#include <vector>

#include "regatta/base/core/units.h"
#include "regatta/platform/sched/job_request.h"

namespace regatta::cluster_replay {

// `run_time` > 0 is the time on its smallest size without interruption, which a scheduler does not
// know.
struct TracedJob {
  sched::JobRequest request;
  Seconds run_time;
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
