// plan/launch.h: a plan as a script that starts it in another framework, every value of the model
// and of the strategy written out, and the search bound to what that framework can run. Pure: text
// from a plan.
//
// A part of a strategy that a framework lacks is refused by name instead of left out, so that every
// script runs the plan that was estimated; a detail of the model that a framework or the job lacks
// is named in a comment of the script. Names are those of Megatron-LM (megatron/training/
// arguments.py), Megatron Bridge (megatron/bridge/training/config.py), DeepSpeed
// (deepspeed/runtime/zero/config.py) and torchtitan 0.2 (torchtitan/config/job_config.py);
// testdata/launch/facts holds them with the commits that they were read from.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "regatta/base/core/result.h"
#include "regatta/model/topo/cluster.h"
#include "regatta/model/workload/job.h"
#include "regatta/model/workload/model.h"
#include "regatta/model/workload/strategy.h"
#include "regatta/planning/plan/plan_search.h"

namespace regatta::plan {

enum class Launcher {
  kMegatron,        // torchrun pretrain_gpt.py of Megatron-LM
  kMegatronBridge,  // a recipe in Python
  kDeepspeed,       // a ds_config.json, and deepspeed with the user's own training program
  kTorchtitan,      // PyTorch FSDP: torchrun with torchtitan's overrides
};
inline constexpr std::array kLaunchers = {Launcher::kMegatron, Launcher::kMegatronBridge,
                                          Launcher::kDeepspeed, Launcher::kTorchtitan};
std::string to_string(Launcher launcher);  // "megatron", "megatron-bridge", ...
// Also "megatron-lm", and "torchrun", the earlier name of torchtitan's.
std::optional<Launcher> launcher_named(std::string_view name);
std::vector<std::string> launcher_names();  // all that launcher_named() knows

// Around the job's rate, which says nothing of it: a cosine down to a tenth, after a first tenth of
// the steps, at most 100 of them, in which the rate rises.
inline constexpr double kFinalLearningRateFraction = 0.1;
inline constexpr int kDefaultSteps = 1000;  // of a job that has no number of them

// Where the ranks go, as far as a script says it.
struct LaunchServers {
  std::vector<std::string> names;  // in the order of their node ranks; empty: not known
  int nics = 0;                    // of a server; 0: not known
  int rails = 1;                   // that its NICs are spread over, NIC i on rail i % rails
};

// The servers that `placement` fills, when it is given; else the first `servers` of those that the
// cluster has without `names`.
LaunchServers launch_servers(const topo::Cluster& cluster, int servers,
                             const std::vector<std::string>& names,
                             const std::vector<topo::DeviceRef>* placement);

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
  workload::Checkpoint checkpoint = {};
  LaunchServers placed = {};
  std::vector<std::string> bounds = {};  // launch_bounds(), for a comment
  Seconds step = {};                     // as predicted, for a comment; 0: not known
};

// In which the learning rate rises.
int warmup_steps(const LaunchInput& input);

// The script. Fails with kInvalidInput where the strategy does not divide the job
// (workload::micro_batches) or the ranks are not the devices, and with kUnsupported for a feature
// that the framework lacks, naming it and an alternative.
Result<std::string> launch_arguments(Launcher launcher, const LaunchInput& input);

// Binds a search to the framework of a launcher: launch_arguments() refuses by the same rules
// (plan/internal/launch/launch_rules.h). The predicate keeps a reference to problem.model.
StrategyPredicate runnable_by(Launcher launcher, const PlanningProblem& problem);
// The keys that it binds, but for those that the request gives: "zero 0 or 1".
std::vector<std::string> launch_bounds(Launcher launcher, const workload::StrategyRequest& request);
// kUnsupported where the framework cannot run the model, the precision or a value of the request.
Status check_launch_request(Launcher launcher, const PlanningProblem& problem);

}  // namespace regatta::plan
