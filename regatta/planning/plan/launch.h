// plan/launch.h: a plan as a shell script that starts it in another framework, every flag of the
// model and of the strategy written out. Pure: text from a plan.
//
// A feature that a framework lacks is refused by name instead of left out, so that every script
// runs the plan that was estimated. Names of flags are those of Megatron-LM with Megatron-Core 0.9
// to 0.14 (megatron/training/arguments.py, CHANGELOG.md), DeepSpeed 0.16
// (deepspeed/runtime/zero/config.py) and torchtitan 0.2 (torchtitan/config/job_config.py).
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>

#include "regatta/base/core/result.h"
#include "regatta/model/workload/job.h"
#include "regatta/model/workload/model.h"
#include "regatta/model/workload/strategy.h"

namespace regatta::plan {

enum class Launcher {
  kMegatron,   // torchrun pretrain_gpt.py of Megatron-LM
  kDeepspeed,  // a ds_config.json, and deepspeed with the user's own training program
  kTorchrun,   // PyTorch FSDP: torchrun with torchtitan's overrides
};
inline constexpr std::array kLaunchers = {Launcher::kMegatron, Launcher::kDeepspeed,
                                          Launcher::kTorchrun};
std::string to_string(Launcher launcher);  // "megatron", "deepspeed", "torchrun"
std::optional<Launcher> launcher_named(std::string_view name);

// Around the job's rate, which says nothing of it: a cosine down to a tenth, after a first tenth of
// the steps, at most 100 of them, in which the rate rises.
inline constexpr double kFinalLearningRateFraction = 0.1;
inline constexpr int kDefaultSteps = 1000;  // of a job that has no number of them

// The references outlive the call.
struct LaunchInput {
  const workload::ModelShape& model;
  const workload::Strategy& strategy;
  workload::Precision precision = workload::Precision::kBf16;
  int global_batch = 0;
  int servers = 1;
  int devices_per_server = 1;
  std::string job_name = "regatta";
  double dropout = 0;  // of attention and of the outputs of a block, where the launcher has it
  workload::Optimizer optimizer;
  int steps = kDefaultSteps;
};

// In which the learning rate rises.
int warmup_steps(const LaunchInput& input);

// The script. Fails with kInvalidInput where the strategy does not divide the job
// (workload::micro_batches) or the ranks are not the devices, and with kUnsupported for a feature
// that the framework lacks, naming it and an alternative.
Result<std::string> launch_arguments(Launcher launcher, const LaunchInput& input);

}  // namespace regatta::plan
