// replay/training_log.h: the log of a training run, as its framework prints it, as a run that can
// be predicted. Pure: text in, values out.
// Sources of the formats (repository, path, commit):
//   NVIDIA/Megatron-LM       megatron/training/training.py training_log(), 86df799dc4c7;
//                            megatron/training/arguments.py _print_args(), 307dcf37f03d
//   pytorch/torchtitan       torchtitan/components/metrics.py log(), c594d8ac89f0;
//                            torchtitan/distributed/parallel_dims.py, 73bb964d8f66;
//                            torchtitan/trainer.py, 8e879cb31d20
//   microsoft/DeepSpeed      deepspeed/utils/timer.py ThroughputTimer, 026f4453281a;
//                            deepspeed/runtime/config.py print(), 063108a9ee57
//   NVIDIA/NeMo              nemo/lightning/pytorch/callbacks/progress_printer.py, 01f7dbc537d7
//   NVIDIA-NeMo/Megatron-Bridge  src/megatron/bridge/training/utils/train_utils.py, 355cef457010
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "regatta/base/core/result.h"
#include "regatta/model/topo/cluster.h"
#include "regatta/model/workload/model.h"
#include "regatta/model/workload/strategy.h"
#include "regatta/planning/replay/internal/published_run.h"

namespace regatta::replay {

// The log says these of its run, or nothing where it is silent.
struct LoggedSettings {
  std::optional<int> devices, tp, pp, cp, ep, etp, virtual_stages, micro_batch, global_batch;
  std::optional<int> zero, shard_ranks;
  std::optional<int> seq, layers, hidden, heads, ffn_hidden, vocab, experts;
  std::optional<double> parameters;
  std::optional<bool> sequence_parallel;
  std::optional<workload::Recompute> recompute;
  std::optional<workload::Precision> precision;
};

// The quantity that step lines give.
enum class StepFigure { kSeconds, kSamplesPerSecond, kTokensPerSecondAndDevice };

// The first fifth of the lines, at least 1 and at most 10, is left out where there are others:
// allocation, compilation and autotuning.
struct LoggedSteps {
  StepFigure figure = StepFigure::kSeconds;
  double median = 0;  // of the lines after those left out
  double spread = 0;  // between their quartiles, over the median
  int lines = 0;      // all of them
  int left_out = 0;
};

struct TrainingLog {
  std::string name;       // of the file
  std::string framework;  // "Megatron-LM"
  LoggedSettings settings;
  LoggedSteps steps;
};

// Fails with kInvalidInput, naming the file, where no framework's step line is found.
Result<TrainingLog> read_training_log(std::string_view text, const std::string& name);

// Whether a file is a table of runs (docs/formats/runs.md), not a log.
bool is_table_of_runs(std::string_view text);

// Stands in where the log is silent; the model is always that of the job where one is given.
struct LogContext {
  const workload::ModelShape* model = nullptr;
  workload::StrategyRequest strategy = {};
  int global_batch = 0;  // 0: not known
  std::optional<workload::Precision> precision = {};
  const topo::ServerType* server = nullptr;
  int devices = 0;    // 0: not known
  std::string stack;  // empty: that of the framework
};

// Without a model in the context it is the only preset that fits what the log says of its sizes.
// Fails with kInvalidInput, naming the file, the first thing that neither says, and its remedy; or
// where the log's sizes are not those of the job.
Result<PublishedRun> run_of_log(const TrainingLog& log, const LogContext& context);

}  // namespace regatta::replay
