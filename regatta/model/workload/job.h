// workload/job.h: a training job as the user wrote it; workload/job_yaml.h reads and validates it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "regatta/model/workload/model.h"
#include "regatta/model/workload/strategy.h"

namespace regatta::workload {

struct Optimizer {  // Adam
  double lr = 3e-4;
  double beta1 = 0.9;
  double beta2 = 0.95;
  double eps = 1e-8;
  double weight_decay = 0;
  double clip_norm = 1.0;  // global gradient norm; 0 = no clipping

  friend bool operator==(const Optimizer&, const Optimizer&) = default;
};

struct Checkpoint {
  std::string folder;  // empty = none
  int every = 0;       // steps; 0 = only at the end

  friend bool operator==(const Checkpoint&, const Checkpoint&) = default;
};

struct Job {
  std::string name;
  ModelShape model;
  std::string data_text;  // a file or folder: bytes are the tokens; empty: not given
  int global_batch = 0;   // samples per step
  Precision precision = Precision::kFp32;
  Optimizer optimizer;
  int steps = 0;  // 0: not given
  std::uint64_t seed = 1;
  StrategyRequest strategy;
  std::vector<std::string> placement;  // rank -> "s0/1"; empty = auto
  Checkpoint checkpoint;

  friend bool operator==(const Job&, const Job&) = default;
};

}  // namespace regatta::workload
