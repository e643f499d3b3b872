// train/internal/train_spec.h: the inputs of one worker of a training run, sent as JSON from `run`.
#pragma once

#include <string>
#include <vector>

#include "regatta/base/core/ids.h"
#include "regatta/base/core/units.h"
#include "regatta/model/workload/job.h"

namespace regatta::train {

struct TrainSpec {
  workload::Job job;
  workload::Strategy strategy;
  bool resume = false;      // from the newest checkpoint in job.checkpoint.folder
  int trace_from_step = 0;  // spans of steps in [from, to) are kept and sent
  int trace_to_step = 0;
  std::string flight_dir;  // for flight files; empty: none
  // Added by agent::Session:
  Rank rank{0};
  int world_size = 1;
  std::vector<std::string> rank_names;
  std::string server;
  std::string address = "127.0.0.1";
  BytesPerSecond link_rate;  // of the NIC in one direction; 0: unknown
  int device_index = 0;
  double cpu_share = 0;        // of a core, for the compute thread; 0: unlimited
  std::string compute_cgroup;  // joined by the compute thread; empty: none
  std::string job_token;
};

}  // namespace regatta::train
