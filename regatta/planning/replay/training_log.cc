#include "regatta/planning/replay/training_log.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <vector>

#include <fmt/format.h>

#include "regatta/base/core/stats.h"
#include "regatta/base/core/text.h"
#include "regatta/planning/replay/internal/csv_table.h"
#include "regatta/planning/replay/internal/log_lines.h"
#include "regatta/planning/replay/internal/log_settings.h"

namespace regatta::replay {
namespace {

constexpr const char* kMegatronLm = "Megatron-LM";
constexpr const char* kBridge = "Megatron-Bridge";
constexpr const char* kMegatronDeepSpeed = "Megatron-DeepSpeed";
constexpr const char* kNemo = "NeMo";
constexpr const char* kTitan = "torchtitan";
constexpr const char* kDeepSpeed = "DeepSpeed";

// A step line has all of `words` and the figure after `marker`.
struct StepLine {
  const char* framework;
  std::string_view words;
  std::string_view marker;
  StepFigure figure;
  double scale;
};

// A log may have lines of several, of which the first counts: Megatron-DeepSpeed prints those of
// both.
constexpr std::array kStepLines = {
    StepLine{kMegatronLm, "iteration ", "elapsed time per iteration (ms):", StepFigure::kSeconds,
             1e-3},
    StepLine{kNemo, "train_step_timing in s", "train_step_timing in s:", StepFigure::kSeconds, 1},
    StepLine{kNemo, "train_step_timing in s", "train_step_timing in s=", StepFigure::kSeconds, 1},
    StepLine{kTitan, "step:", "tps:", StepFigure::kTokensPerSecondAndDevice, 1},
    StepLine{kDeepSpeed, "samples/sec:", "iter time (s):", StepFigure::kSeconds, 1},
    StepLine{kDeepSpeed, "CurrSamplesPerSec", "CurrSamplesPerSec=", StepFigure::kSamplesPerSecond,
             1},
    StepLine{kDeepSpeed, "SamplesPerSec", "SamplesPerSec=", StepFigure::kSamplesPerSecond, 1}};

// A sum or a quotient of figures of step lines within these is finite.
constexpr double kLeastFigure = 1e-9;
constexpr double kMostFigure = 1e12;
constexpr double kMostDevices = 1e8;

std::vector<double> figures_of(const std::vector<std::string>& lines, const StepLine& kind) {
  std::vector<double> figures;
  for (const std::string& line : lines) {
    if (line.find(kind.words) == std::string::npos) continue;
    const auto figure = number_after(line, kind.marker);
    if (figure && *figure >= kLeastFigure && *figure <= kMostFigure)
      figures.push_back(*figure * kind.scale);
  }
  return figures;
}

LoggedSteps steps_of(std::vector<double> figures, StepFigure figure) {
  LoggedSteps steps{.figure = figure, .lines = static_cast<int>(figures.size())};
  if (figures.size() > 1) steps.left_out = std::clamp(static_cast<int>(figures.size()) / 5, 1, 10);
  figures.erase(figures.begin(), figures.begin() + steps.left_out);
  steps.median = median(figures);
  std::sort(figures.begin(), figures.end());
  const std::size_t last = figures.size() - 1;
  steps.spread = (figures[last - last / 4] - figures[last / 4]) / steps.median;
  return steps;
}

bool has_line(const std::vector<std::string>& lines, std::string_view words) {
  return std::any_of(lines.begin(), lines.end(), [&](const std::string& line) {
    return line.find(words) != std::string::npos;
  });
}

// The frameworks that print Megatron-LM's step line.
std::string framework_of(const std::vector<std::string>& lines, const StepLine& kind) {
  if (kind.framework != std::string_view(kMegatronLm)) return kind.framework;
  if (has_line(lines, "DeepSpeedEngine configuration:") || has_line(lines, "SamplesPerSec="))
    return kMegatronDeepSpeed;
  if (has_line(lines, "MODEL_TFLOP/s/GPU")) return kBridge;
  return kMegatronLm;
}

const char* stack_of_framework(const TrainingLog& log, workload::Precision precision,
                               bool has_experts, int zero) {
  const std::string_view framework = log.framework;
  if (framework == kTitan) return "fsdp";
  const bool is_narrow = workload::is_eight_bits_or_less(precision);
  if (framework == kBridge && !has_experts) return "megatron-bridge-dense";
  if (framework == kBridge || framework == kNemo) return has_experts ? "megatron-bridge" : "nemo";
  if (framework == kMegatronLm) return is_narrow ? "megatron-bridge-dense" : "megatron-core";
  if (zero == 3) return "deepspeed-zero3-fp16";
  return precision == workload::Precision::kFp16 ? "megatron-deepspeed-fp16"
                                                 : "megatron-deepspeed-bf16";
}

// Whether a model has the sizes that the log has.
bool fits(const LoggedSettings& logged, const workload::ModelShape& model) {
  constexpr double kRounding = 0.01;  // a vocabulary is padded to fit the tensor ranks
  const auto same = [](const std::optional<int>& said, int value) {
    return !said || *said == value;
  };
  if (logged.parameters) {
    const auto parameters = static_cast<double>(total_parameters(model));
    if (std::abs(*logged.parameters / parameters - 1) > kRounding) return false;
  }
  if (logged.vocab && std::abs(static_cast<double>(*logged.vocab) / model.vocab - 1) > kRounding)
    return false;
  // Frameworks that print sizes print experts, too.
  if (logged.layers && logged.experts.value_or(0) != model.experts.count) return false;
  return same(logged.layers, model.layers) && same(logged.hidden, model.hidden) &&
         same(logged.heads, model.heads) && same(logged.ffn_hidden, model.ffn_hidden);
}

Error missing(const TrainingLog& log, const std::string& thing, const std::string& remedy) {
  return {Code::kInvalidInput,
          fmt::format("{}: the log does not say {}; {}", log.name, thing, remedy)};
}

Result<workload::ModelShape> model_of_log(const TrainingLog& log, const LogContext& context) {
  const LoggedSettings& logged = log.settings;
  if (context.model != nullptr) {
    if (fits(logged, *context.model)) return *context.model;
    return Error{Code::kInvalidInput,
                 fmt::format("{}: the model of the log has other sizes ({} layers of {}) than that "
                             "of the job ({} of {}); give the job of this log",
                             log.name, logged.layers.value_or(context.model->layers),
                             logged.hidden.value_or(context.model->hidden), context.model->layers,
                             context.model->hidden)};
  }
  const bool is_said = logged.parameters || (logged.layers && logged.hidden);
  std::vector<std::string> names;
  if (is_said) {
    for (const std::string& name : workload::model_preset_names())
      if (fits(logged, workload::find_model_preset(name)->model)) names.push_back(name);
  }
  if (names.size() == 1) return workload::find_model_preset(names.front())->model;
  if (names.empty()) return missing(log, "its model", "give a job with it: --job JOB");
  return missing(log, fmt::format("which of {} its model is", join(names, ", ")),
                 "give a job with it: --job JOB");
}

// The log is believed before the context, and the context before `otherwise`.
int degree(const std::optional<int>& logged, const std::optional<int>& given, int otherwise) {
  return logged.value_or(given.value_or(otherwise));
}

void interleave_stages(const LoggedSettings& logged, const workload::StrategyRequest& given,
                       workload::Strategy& strategy) {
  strategy.virtual_stages = degree(logged.virtual_stages, given.virtual_stages, 1);
  if (strategy.virtual_stages > 1) strategy.schedule = workload::PipelineSchedule::kInterleaved;
  if (given.schedule) strategy.schedule = *given.schedule;
}

Result<workload::Strategy> strategy_of_log(const TrainingLog& log, const LogContext& context,
                                           const workload::ModelShape& model) {
  const LoggedSettings& logged = log.settings;
  const workload::StrategyRequest& given = context.strategy;
  workload::Strategy strategy{.tp = degree(logged.tp, given.tp, 1),
                              .pp = degree(logged.pp, given.pp, 1)};
  strategy.cp = degree(logged.cp, given.cp, 1);
  if (has_experts(model)) {
    strategy.ep = degree(logged.ep, given.ep, 1);
    strategy.etp = degree(logged.etp, given.etp, 0);
  }
  strategy.zero = degree(logged.zero, given.zero, 0);
  strategy.shard_ranks = degree(logged.shard_ranks, given.shard_ranks, 0);
  interleave_stages(logged, given, strategy);
  strategy.sequence_parallel =
      strategy.tp > 1 && logged.sequence_parallel.value_or(given.sequence_parallel.value_or(false));
  strategy.recompute =
      logged.recompute.value_or(given.recompute.value_or(workload::Recompute::kNone));
  strategy.micro_batch = degree(logged.micro_batch, given.micro_batch, 0);
  if (strategy.micro_batch == 0)
    return missing(log, "its micro-batch", "give it: --strategy '{micro_batch: N}'");
  const double held = static_cast<double>(strategy.tp) * strategy.pp * strategy.cp;
  // DeepSpeed's world is that of the replicas.
  const bool counts_replicas = log.framework == kDeepSpeed && logged.devices;
  const double devices = counts_replicas ? *logged.devices * held
                                         : degree(logged.devices, std::nullopt, context.devices);
  if (devices == 0)
    return missing(log, "its number of devices", "give the cluster of the run: --cluster CLUSTER");
  if (held > devices || std::fmod(devices, held) != 0 || devices > kMostDevices) {
    return Error{Code::kInvalidInput,
                 fmt::format("{}: its {} devices are no multiple of tp x pp x cp {}; give the "
                             "degrees of the run with --strategy",
                             log.name, devices, held)};
  }
  strategy.dp = static_cast<int>(devices / held);
  return strategy;
}

double step_seconds(const TrainingLog& log, const PublishedRun& run) {
  const double figure = log.steps.median;
  switch (log.steps.figure) {
    case StepFigure::kSeconds:
      return figure;
    case StepFigure::kSamplesPerSecond:
      return run.global_batch / figure;
    case StepFigure::kTokensPerSecondAndDevice:
      return static_cast<double>(run.global_batch) * run.model.seq /
             (figure * run.strategy.world_size());
  }
  return figure;
}

}  // namespace

Result<TrainingLog> read_training_log(std::string_view text, const std::string& name) {
  const std::vector<std::string> lines = log_lines(text);
  for (const StepLine& kind : kStepLines) {
    const std::vector<double> figures = figures_of(lines, kind);
    if (figures.empty()) continue;
    return TrainingLog{.name = name,
                       .framework = framework_of(lines, kind),
                       .settings = logged_settings(lines),
                       .steps = steps_of(figures, kind.figure)};
  }
  return Error{Code::kInvalidInput,
               name +
                   ": no step line of Megatron-LM, Megatron-Bridge, NeMo, torchtitan or "
                   "DeepSpeed is in it, and it is no table of runs; give a log of the rank that "
                   "prints them"};
}

bool is_table_of_runs(std::string_view text) {
  const auto columns = CsvTable::columns(text, "");
  return columns && std::find(columns->begin(), columns->end(), "gpus") != columns->end();
}

Result<PublishedRun> run_of_log(const TrainingLog& log, const LogContext& context) {
  PublishedRun run;
  REGATTA_TRY(model, model_of_log(log, context));
  run.model = model;
  if (log.settings.seq) run.model.seq = *log.settings.seq;
  REGATTA_TRY(strategy, strategy_of_log(log, context, run.model));
  run.strategy = strategy;
  run.global_batch = degree(log.settings.global_batch, std::nullopt, context.global_batch);
  if (run.global_batch == 0)
    return missing(log, "its global batch", "give a job with it: --job JOB");
  const auto precision = log.settings.precision ? log.settings.precision : context.precision;
  if (!precision) return missing(log, "its precision", "give a job with it: --job JOB");
  run.precision = *precision;
  if (context.server == nullptr)
    return missing(log, "its servers", "give the cluster of the run: --cluster CLUSTER");
  run.server = *context.server;
  run.is_recompute_open =
      has_experts(run.model) && !log.settings.recompute && !context.strategy.recompute;
  run.stack =
      !context.stack.empty()
          ? context.stack
          : stack_of_framework(log, run.precision, has_experts(run.model), run.strategy.zero);
  run.measured = step_seconds(log, run);
  run.name = log.name;
  run.group = log.name;
  run.is_calibration = true;
  return run;
}

}  // namespace regatta::replay
