#include "regatta/runtime/train/internal/trainer.h"

#include <array>
#include <cmath>
#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <utility>

#include <ATen/Parallel.h>
#include <ATen/core/ivalue.h>
#include <ATen/ops/empty.h>
#include <c10/core/InferenceMode.h>
#include <fmt/core.h>

#include "regatta/runtime/train/adam.h"
#include "regatta/runtime/train/internal/checkpoint.h"
#include "regatta/runtime/train/internal/dataset.h"
#include "regatta/runtime/train/internal/error_feedback_file.h"
#include "regatta/runtime/train/internal/gradient_reducer.h"
#include "regatta/runtime/train/internal/pipeline_step.h"

namespace regatta::train {
namespace {

using workload::Phase;

// Everything of one rank between the first step and the last. Members refer to earlier ones.
struct Trainer {
  const TrainSpec& spec;
  RankCommunicators& groups;
  const TrainHooks& hooks;
  int micro_batches;
  Dataset dataset;  // empty on stages that read no tokens
  PhaseClock clock;
  TpGroup tp;
  Parameters parameters;
  Stage stage;
  StageTransfers activations;
  StageTransfers gradients;
  GradientReducer reducer;
  int first_step = 0;  // of this process: the steps that the checkpoint had done

  Trainer(const TrainSpec& given, RankCommunicators& all, const TrainHooks& calls, int count,
          Dataset data);
  Trainer(const Trainer&) = delete;
  Trainer& operator=(const Trainer&) = delete;
};

comm::Communicator* pointer(std::optional<comm::Communicator>& communicator) {
  return communicator ? &*communicator : nullptr;
}

Trainer::Trainer(const TrainSpec& given, RankCommunicators& all, const TrainHooks& calls, int count,
                 Dataset data)
    : spec(given),
      groups(all),
      hooks(calls),
      micro_batches(count),
      dataset(std::move(data)),
      clock(given.rank),
      tp(pointer(all.tp), clock),
      parameters(make_parameters(stage_parameters(given.job.model, given.strategy, all.at),
                                 {.tp_size = given.strategy.tp,
                                  .tp_rank = all.at.tp,
                                  .precision = given.job.precision,
                                  .seed = given.job.seed})),
      stage(given.job, given.strategy, all.at, parameters, tp),
      activations(pointer(all.activations_in), pointer(all.activations_out), tp,
                  stage.boundary_shape(), scalar_type(given.job.precision)),
      gradients(pointer(all.gradients_in), pointer(all.gradients_out), tp, stage.boundary_shape(),
                scalar_type(given.job.precision)),
      reducer(pointer(all.dp), parameters.gradient,
              {.overlap = given.strategy.overlap,
               .compression = compression_of(given.strategy.compression)},
              clock) {}

bool is_traced(const TrainSpec& spec, int step) {
  return step >= spec.trace_from_step && step < spec.trace_to_step;
}

// Samples of the global batch go to the data-parallel ranks in runs, then to micro-batches in runs.
MicroBatch make_micro_batch(const Trainer& trainer, int step, int index) {
  MicroBatch made{.index = index, .tokens = {}, .targets = {}};
  if (!trainer.stage.is_first() && !trainer.stage.is_last()) return made;
  const workload::Job& job = trainer.spec.job;
  const int seq = job.model.seq;
  const int batch = trainer.spec.strategy.micro_batch;
  made.tokens = at::empty({static_cast<std::int64_t>(seq) * batch}, at::kLong);
  made.targets = at::empty({static_cast<std::int64_t>(seq) * batch}, at::kLong);
  auto* tokens = made.tokens.data_ptr<std::int64_t>();
  auto* targets = made.targets.data_ptr<std::int64_t>();
  const long long per_replica = static_cast<long long>(trainer.micro_batches) * batch;
  const long long first = static_cast<long long>(step) * job.global_batch +
                          trainer.groups.at.dp * per_replica +
                          static_cast<long long>(index) * batch;
  for (int b = 0; b < batch; ++b) {
    const std::uint8_t* bytes = sample(trainer.dataset, job.seed, first + b);
    for (int s = 0; s < seq; ++s) {
      tokens[s * batch + b] = bytes[s];
      targets[s * batch + b] = bytes[s + 1];
    }
  }
  return made;
}

// The first and the last stage hold the same table: both get the sum of their gradients.
Status reduce_tied_table(Trainer& trainer) {
  if (!trainer.groups.tie) return {};
  trainer.clock.enter({.phase = Phase::kDpComm});
  const Parameter& table = trainer.parameters["token.weight"];
  void* data = table.gradient.data_ptr();
  auto handle = trainer.groups.tie->all_reduce(data, data, static_cast<std::size_t>(table.count),
                                               comm::DataType::kF32, comm::ReduceOp::kSum);
  Status done = handle.wait();
  trainer.clock.enter({});
  return done;
}

struct StepSums {
  double gradient_squares = 0;
  double loss = 0;
};

// Squares from one replica, losses from the last stages, each counted once.
Result<StepSums> reduce_sums(Trainer& trainer) {
  const workload::RankCoordinates& at = trainer.groups.at;
  trainer.clock.enter({.phase = Phase::kOptimizer});
  const double loss = trainer.stage.take_loss_sum();
  std::array<double, 2> sums{0, trainer.stage.is_last() && at.tp == 0 ? loss : 0};
  if (trainer.spec.job.optimizer.clip_norm > 0 && at.dp == 0)
    sums[0] = gradient_square_sum(trainer.parameters, at.tp);
  if (trainer.groups.world) {
    const bool pipelined = trainer.spec.strategy.pp > 1;
    trainer.clock.enter({.phase = pipelined ? Phase::kBubble : Phase::kDpComm});
    auto handle = trainer.groups.world->all_reduce(sums.data(), sums.data(), sums.size(),
                                                   comm::DataType::kF64, comm::ReduceOp::kSum);
    REGATTA_TRY_DO(handle.wait());
  }
  trainer.clock.enter({});
  return StepSums{sums[0], sums[1]};
}

Status check_stop(const TrainHooks& hooks) {
  if (!hooks.stop_requested || !hooks.stop_requested()) return {};
  return Error{Code::kUnavailable, "stopped on request"};
}

// Asked before the update, which would spoil the weights, and so before a checkpoint keeps them.
// Every rank has the same two numbers: all end at the same step.
Status check_finite(const Trainer& trainer, int step, double loss, double norm) {
  if (std::isfinite(loss) && std::isfinite(norm)) return {};
  const workload::Job& job = trainer.spec.job;
  const bool is_loss = !std::isfinite(loss);
  std::string remedy = "lower optimizer.lr";
  if (trainer.spec.resume && step == trainer.first_step) {
    remedy = fmt::format("remove the newest checkpoint in {}, it holds this already, and {}",
                         job.checkpoint.folder, remedy);
  } else if (job.optimizer.clip_norm <= 0) {
    remedy += " or set optimizer.clip_norm";
  }
  return Error{Code::kConflict,
               fmt::format("step {}/{}: the {} is not finite ({}); {}", step + 1, job.steps,
                           is_loss ? "loss" : "gradient norm",
                           std::isnan(is_loss ? loss : norm) ? "nan" : "inf", remedy)};
}

Result<StepReport> run_one_step(Trainer& trainer, int step) {
  const TrainSpec& spec = trainer.spec;
  const PipelineStep plan{
      .passes = pipeline::stage_order(
          {.stages = spec.strategy.pp, .micro_batches = trainer.micro_batches},
          trainer.groups.at.pp),
      .micro_batch = [&](int index) { return make_micro_batch(trainer, step, index); },
      .ready = [&](std::int64_t end) { trainer.reducer.ready(end); },
      .check_stop = [&] { return check_stop(trainer.hooks); }};
  REGATTA_TRY_DO(run_step(trainer.stage, trainer.activations, trainer.gradients, plan));
  REGATTA_TRY_DO(trainer.reducer.finish());
  REGATTA_TRY_DO(reduce_tied_table(trainer));
  REGATTA_TRY(sums, reduce_sums(trainer));
  const long long tokens = static_cast<long long>(spec.job.global_batch) * spec.job.model.seq;
  const double loss = sums.loss / static_cast<double>(tokens);
  const double norm = std::sqrt(sums.gradient_squares);
  REGATTA_TRY_DO(check_finite(trainer, step, loss, norm));
  trainer.clock.enter({.phase = Phase::kOptimizer});
  adam_update(trainer.parameters, spec.job.optimizer, step + 1,
              clip_scale(spec.job.optimizer.clip_norm, norm));
  trainer.clock.enter({});
  REGATTA_TRY_DO(trainer.activations.finish_sends());
  REGATTA_TRY_DO(trainer.gradients.finish_sends());
  return StepReport{.step = step,
                    .loss = loss,
                    .gradient_norm = norm,
                    .tokens = tokens,
                    .times = trainer.clock.finish_step(is_traced(spec, step + 1))};
}

// All ranks learn whether all of them did well; a rank that did not returns its own error.
Status agree(RankCommunicators& groups, const Status& mine) {
  if (!groups.world) return mine;
  int good = mine ? 1 : 0;
  auto handle =
      groups.world->all_reduce(&good, &good, 1, comm::DataType::kI32, comm::ReduceOp::kMin);
  Status done = handle.wait();
  if (!mine) return mine;
  if (!done) return done;
  if (good == 1) return {};
  return Error{Code::kUnavailable,
               "another rank could not save or load its part of the checkpoint"};
}

Status save_checkpoint(Trainer& trainer, int steps_done) {
  const workload::Job& job = trainer.spec.job;
  const std::string& folder = job.checkpoint.folder;
  if (folder.empty()) return {};
  const bool is_last = steps_done == job.steps;
  if (!is_last && (job.checkpoint.every <= 0 || steps_done % job.checkpoint.every != 0)) return {};
  Status saved;
  if (trainer.groups.at.dp == 0)
    saved = save_part(folder, steps_done, trainer.groups.at, trainer.parameters);
  if (const auto& feedback = trainer.reducer.feedback(); saved && !feedback.empty())
    saved = save_error_feedback(folder, steps_done, trainer.groups.at, feedback);
  REGATTA_TRY_DO(agree(trainer.groups, saved));
  Status manifest;
  if (trainer.spec.rank.value == 0)
    manifest = save_manifest(folder, steps_done, job, trainer.spec.strategy);
  return agree(trainer.groups, manifest);
}

// Rank 0 chooses the checkpoint, so that all ranks take the same one. Returns the steps done.
Result<int> load_checkpoint(Trainer& trainer) {
  const TrainSpec& spec = trainer.spec;
  if (!spec.resume) return 0;
  const std::string& folder = spec.job.checkpoint.folder;
  if (folder.empty()) {
    return Error{Code::kInvalidInput,
                 "resume: the job names no checkpoint.folder; add it or start without resume"};
  }
  int step = -1;
  Status found;
  if (spec.rank.value == 0) {
    const Result<int> newest = newest_checkpoint(folder);
    if (newest) step = *newest;
    if (!newest) found = newest.error();
  }
  REGATTA_TRY_DO(agree(trainer.groups, found));
  if (trainer.groups.world) {
    auto handle = trainer.groups.world->broadcast(&step, 1, comm::DataType::kI32, Rank{0});
    REGATTA_TRY_DO(handle.wait());
  }
  Status loaded = check_manifest(folder, step, spec.job, spec.strategy);
  if (loaded) loaded = load_part(folder, step, trainer.groups.at, trainer.parameters);
  if (auto& feedback = trainer.reducer.feedback(); loaded && !feedback.empty())
    loaded = load_error_feedback(
        folder, step, {trainer.groups.at, spec.strategy.dp, saved_error_feedbacks(folder, step)},
        feedback);
  REGATTA_TRY_DO(agree(trainer.groups, loaded));
  return step;
}

Status train_unguarded(const TrainSpec& spec, RankCommunicators& groups, const TrainHooks& hooks) {
  const workload::Job& job = spec.job;
  REGATTA_TRY(count, workload::micro_batches(job.model, spec.strategy, job.global_batch));
  Dataset dataset;
  if (groups.at.pp == 0 || groups.at.pp == spec.strategy.pp - 1) {
    REGATTA_TRY(loaded, load_dataset(job.data_text, job.model.seq, job.model.vocab));
    dataset = std::move(loaded);
  }
  const auto trainer = std::make_unique<Trainer>(spec, groups, hooks, count, std::move(dataset));
  REGATTA_TRY(first, load_checkpoint(*trainer));
  trainer->first_step = first;
  trainer->clock.start(first, is_traced(spec, first));
  for (int step = first; step < job.steps; ++step) {
    REGATTA_TRY(report, run_one_step(*trainer, step));
    if (hooks.on_step) hooks.on_step(report);
    REGATTA_TRY_DO(save_checkpoint(*trainer, step + 1));
  }
  return {};
}

}  // namespace

Status train(const TrainSpec& spec, RankCommunicators& groups, const TrainHooks& hooks) {
  at::set_num_threads(1);
  // No autograd: gradients are computed by the layers themselves.
  const c10::InferenceMode inference;
  try {
    return train_unguarded(spec, groups, hooks);
  } catch (const std::bad_alloc&) {
    return Error{Code::kExhausted,
                 "out of memory; take a smaller micro_batch, more tp or pp, or recompute: full"};
  } catch (const std::exception& failure) {
    const std::string_view text = failure.what();
    return Error{Code::kUnavailable,
                 fmt::format("libtorch failed: {}", text.substr(0, text.find('\n')))};
  }
}

}  // namespace regatta::train
