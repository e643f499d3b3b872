#include "regatta/planning/plan/internal/estimate/heterogeneous_estimate.h"

#include <algorithm>
#include <numeric>

#include <fmt/format.h>

#include "regatta/base/core/ids.h"
#include "regatta/planning/plan/internal/estimate/heterogeneous_job.h"
#include "regatta/planning/plan/internal/estimate/heterogeneous_pipeline.h"

namespace regatta::plan {
namespace {

class Assembly {
 public:
  Assembly(const HeterogeneousJob& job, const HeterogeneousSplit& split)
      : job_(job), split_(split), spans_(stage_block_counts(job.model, split.layers)) {}

  HeterogeneousEstimate run() {
    HeterogeneousEstimate estimate;
    pipelines(estimate);
    ends(estimate.step);
    memory(estimate);
    return estimate;
  }

 private:
  int stages() const { return job_.strategy.pp; }
  const workload::BlockCounts& span(int stage) const { return at(spans_, stage); }

  // The slowest replica decides; of it, the slowest stage is what the step consists of.
  void pipelines(HeterogeneousEstimate& estimate) {
    estimate.stages.resize(split_.layers.size());
    for (int replica = 0; replica < job_.strategy.dp; ++replica) {
      const int count = at(split_.micro_batches, replica);
      const int like = at(job_.like, replica);
      if (like < replica && at(split_.micro_batches, like) >= count) continue;
      const std::vector<MicroBatchTime> slots = micro_batch_times(job_, spans_, replica);
      const Seconds time = pipeline_time(slots, count);
      for (std::size_t s = 0; s < slots.size(); ++s)
        estimate.stages[s].slot = std::max(estimate.stages[s].slot, slots[s].total());
      if (replica > 0 && time <= makespan_) continue;
      makespan_ = time;
      micro_batches_ = count;
      slots_ = slots;
      slowest_ = replica;
    }
    estimate.slowest_replica = slowest_;
    const auto worst = std::max_element(
        slots_.begin(), slots_.end(),
        [](const MicroBatchTime& a, const MicroBatchTime& b) { return a.total() < b.total(); });
    const auto stage = static_cast<int>(worst - slots_.begin());
    estimate.step =
        micro_batch_breakdown(job_, job_.tensor_group(stage, slowest_).work, stage, span(stage))
            .all;
    estimate.step.pp_comm = job_.messages_of(stage, slowest_, estimate.step.matmul);
    estimate.step *= micro_batches_;
    estimate.step.bubble = makespan_ - worst->total() * micro_batches_;
    estimate.step.stragglers = straggler_time(estimate.step, job_.servers);
  }

  // A stage ends once the last gradients have left it for the stages before it: it begins to sum
  // that much sooner than the first.
  void ends(StepBreakdown& step) const {
    Seconds ahead;
    Seconds last;
    for (int stage = 0; stage < stages(); ++stage) {
      const StageUpdate end = stage_update(job_, stage, span(stage), micro_batches_);
      const Seconds tied = stage == 0 || stage == stages() - 1 ? job_.tied_sum : Seconds{};
      StageUpdate from_last = end;
      from_last.sums = std::max(tied + end.sums - ahead, Seconds{});
      if (stage == 0 || from_last.total() > last) {
        last = from_last.total();
        step.dp_comm = from_last.sums;
        step.optimizer = end.optimizer;
        step.offload = end.offload;
      }
      // Those of every micro-batch wait for all stages.
      if (job_.strategy.zero < 2) ahead += at(slots_, stage).backward;
    }
  }

  void memory(HeterogeneousEstimate& estimate) const {
    const int most = *std::max_element(split_.micro_batches.begin(), split_.micro_batches.end());
    double fullest = 0;
    for (int s = 0; s < stages(); ++s) {
      HeterogeneousStage& stage = at(estimate.stages, s);
      const HeterogeneousGroup& group = job_.stage_group(s);
      stage.layers = at(split_.layers, s);
      stage.device = group.device;
      stage.capacity = group.capacity;
      stage.memory = stage_memory(job_, s, span(s), most);
      const double share = stage.memory.total() / static_cast<double>(stage.capacity.value);
      if (share > fullest) estimate.worst_stage = s;
      fullest = std::max(fullest, share);
    }
  }

  const HeterogeneousJob& job_;
  const HeterogeneousSplit& split_;
  std::vector<workload::BlockCounts> spans_;
  std::vector<MicroBatchTime> slots_;  // of the slowest replica
  Seconds makespan_;
  int micro_batches_ = 0;
  int slowest_ = 0;
};

HeterogeneousSplit even_split_of(const workload::ModelShape& model,
                                 const workload::Strategy& strategy, int count) {
  HeterogeneousSplit split;
  for (int stage = 0; stage < strategy.pp; ++stage)
    split.layers.push_back(workload::stage_layers(model, strategy, stage).count);
  for (int replica = 0; replica < strategy.dp; ++replica)
    split.micro_batches.push_back(count / strategy.dp + (replica < count % strategy.dp ? 1 : 0));
  return split;
}

}  // namespace

Status check_split(const HeterogeneousJob& job, const HeterogeneousSplit& split) {
  const auto sum = [](const std::vector<int>& of) {
    return std::accumulate(of.begin(), of.end(), 0);
  };
  const auto least = [](const std::vector<int>& of) {
    return of.empty() ? 0 : *std::min_element(of.begin(), of.end());
  };
  if (static_cast<int>(split.layers.size()) != job.strategy.pp || least(split.layers) < 0 ||
      sum(split.layers) != job.model.layers) {
    return Error{
        Code::kInvalidInput,
        fmt::format("split: its {} stages hold {} layers, the strategy has {} stages and "
                    "the model {} layers; give each stage its layers",
                    split.layers.size(), sum(split.layers), job.strategy.pp, job.model.layers)};
  }
  if (static_cast<int>(split.micro_batches.size()) != job.strategy.dp ||
      least(split.micro_batches) < 1 || sum(split.micro_batches) != job.micro_batches) {
    return Error{Code::kInvalidInput,
                 fmt::format("split: its {} replicas take {} micro-batches, the job has {} for {} "
                             "replicas; give each replica one or more of them",
                             split.micro_batches.size(), sum(split.micro_batches),
                             job.micro_batches, job.strategy.dp)};
  }
  return {};
}

HeterogeneousSplit even_split(const HeterogeneousInput& input) {
  return even_split_of(input.model, input.strategy,
                       input.global_batch / input.strategy.micro_batch);
}
HeterogeneousSplit even_split(const HeterogeneousJob& job) {
  return even_split_of(job.model, job.strategy, job.micro_batches);
}

HeterogeneousEstimate estimate_heterogeneous(const HeterogeneousJob& job,
                                             const HeterogeneousSplit& split) {
  return Assembly(job, split).run();
}

Result<HeterogeneousEstimate> estimate_heterogeneous(const HeterogeneousInput& input,
                                                     const HeterogeneousSplit& split) {
  REGATTA_TRY(job, heterogeneous_job(input));
  REGATTA_TRY_DO(check_split(job, split));
  return estimate_heterogeneous(job, split);
}

}  // namespace regatta::plan
