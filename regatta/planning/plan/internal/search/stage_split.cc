#include "regatta/planning/plan/internal/search/stage_split.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <functional>
#include <optional>

#include "regatta/base/core/ids.h"
#include "regatta/model/pipeline/uneven_stages.h"
#include "regatta/planning/plan/internal/estimate/stage_times.h"

namespace regatta::plan {
namespace {

using workload::BlockCounts;
using workload::PipelineSchedule;

// Sums are compared across orders of summation.
constexpr double kRounding = 1e-9;

std::vector<BlockCounts> blocks_of(const EstimateInput& input) {
  const workload::Strategy& strategy = input.strategy;
  const pipeline::PipelineShape shape{.schedule = strategy.schedule,
                                      .stages = strategy.pp,
                                      .micro_batches = 1,
                                      .virtual_stages = strategy.virtual_stages};
  const double share = strategy.schedule == PipelineSchedule::kDualPipe ? 0.5 : 1;
  std::vector<BlockCounts> stages;
  for (int stage = 0; stage < strategy.pp; ++stage) {
    BlockCounts blocks;
    for (int part = 0; part < pipeline::parts_of(shape); ++part)
      blocks += blocks_of_chunk(input.model, strategy, chunk_of(shape, stage, part));
    blocks *= share;
    stages.push_back(blocks);
  }
  return stages;
}

// The time of a stage for a micro-batch, with the overlap of the schedule.
Seconds slot_of(const EstimateInput& input, const MicroBatchWork& work, const BlockCounts& blocks,
                bool has_output) {
  StepBreakdown all = stage_time(work, blocks, has_output).all;
  if (input.strategy.schedule == PipelineSchedule::kDualPipe) overlap_exchanges(all);
  return all.total();
}

// Stages between the ends of which none holds fewer of every kind than one whose activations stay
// longer. That is the one before it; with zb-v, the one behind.
void add_fullest(StageSplit& split, PipelineSchedule schedule) {
  const auto is_below = [](const BlockCounts& a, const BlockCounts& b) {
    return std::equal(a.of.begin(), a.of.end(), b.of.begin(), std::less_equal<>());
  };
  const int stages = static_cast<int>(split.blocks.size());
  split.fullest = {0};
  if (stages > 1) split.fullest.push_back(stages - 1);
  const std::size_t ends = split.fullest.size();
  for (int i = 1; i + 1 < stages; ++i) {
    const int stage = schedule == PipelineSchedule::kZbV ? stages - 1 - i : i;
    const BlockCounts& blocks = at(split.blocks, stage);
    const bool is_known =
        std::any_of(split.fullest.begin() + static_cast<std::ptrdiff_t>(ends), split.fullest.end(),
                    [&](int one) { return is_below(blocks, at(split.blocks, one)); });
    if (!is_known) split.fullest.push_back(stage);
  }
}

std::optional<Seconds> makespan_of(const EstimateInput& input, const MicroBatchWork& work,
                                   const std::vector<BlockCounts>& stages, int micro_batches) {
  if (input.strategy.schedule != PipelineSchedule::k1F1B || stages.size() == 1) return std::nullopt;
  const pipeline::PipelineShape shape{.schedule = PipelineSchedule::k1F1B,
                                      .stages = input.strategy.pp,
                                      .micro_batches = micro_batches};
  pipeline::PipelineTimes times = pipeline::equal_times(shape, {}, {});
  for (std::size_t i = 0; i < stages.size(); ++i) {
    pipeline::PartTimes& part = times.parts[i];
    const auto add = [&](const BlockWork& block, double blocks) {
      part.forward += block.forward * blocks;
      part.input_gradient += (block.time.total() - block.forward) * blocks;
    };
    for (int kind = 0; kind < workload::kBlockKinds; ++kind)
      add(at(work.blocks, kind), stages[i][kind]);
  }
  const Seconds output = work.embedding_and_head.total();
  times.parts.back().forward += output / 3;
  times.parts.back().input_gradient += output / 1.5;
  return pipeline::makespan(shape, times);
}

// Stages of `pieces` blocks in all, that take `block` each; on the first they take `saved` less in
// all, on the last is the output layer.
struct SplitBalance {
  int stages = 0;
  int pieces = 0;
  double block = 0;
  double saved = 0;
  double output = 0;

  int pieces_within(double time) const {
    return static_cast<int>(std::floor(time / block + kRounding));
  }
  int first_within(double time) const { return pieces_within(time + saved); }
  int last_within(double time) const {
    return std::min(pieces_within(time - output), pieces - stages + 1);
  }

  bool is_possible(double time) const {
    const long long middle = static_cast<long long>(stages - 2) * pieces_within(time);
    const int first = first_within(time);
    const int last = last_within(time);
    return first >= 1 && last >= 1 && (stages == 2 || pieces_within(time) >= 1) &&
           first + middle + last >= pieces;
  }

  // The least time within which all pieces find a stage. It is that of a number of pieces on the
  // first, on the last or on another stage, and between two numbers on others lies one of each.
  double least_time() const {
    const double mean = (pieces * block - saved + output) / stages;
    int count = std::max({1, pieces_within(mean), pieces_within(output) + 1});
    while (!is_possible(count * block))
      ++count;
    double least = count * block;
    for (const double time : {last_within(least) * block + output,
                              std::floor((least + saved) / block + kRounding) * block - saved})
      if (time < least && is_possible(time)) least = time;
    return least;
  }

  // As many as the last can take within `time`; of the rest as many for one as for another, what
  // is over for those behind, which hold fewer micro-batches at once.
  std::vector<int> split(double time) const {
    std::vector<int> counts(static_cast<std::size_t>(stages));
    counts.back() = last_within(time);
    const int rest = pieces - counts.back();
    const int others = stages - 2;
    const int least = rest - others * pieces_within(time);
    counts.front() = std::min(std::max(rest / (stages - 1), least), first_within(time));
    if (others == 0) counts.front() = rest;
    const int middle = rest - counts.front();
    for (int i = 0; i < others; ++i) {
      const bool has_more = i >= others - middle % others;
      at(counts, i + 1) = middle / others + (has_more ? 1 : 0);
    }
    return counts;
  }
};

// Nothing where the stages hold more kinds of blocks than a balance knows.
std::optional<SplitBalance> balance_of(const EstimateInput& input, const MicroBatchWork& work) {
  const workload::Strategy& strategy = input.strategy;
  const int unit = strategy.virtual_stages;
  const int layers = input.model.layers;
  if (!are_kinds_in_order(input.model) || strategy.pp == 1 ||
      strategy.schedule == PipelineSchedule::kZbV ||
      strategy.schedule == PipelineSchedule::kDualPipe || layers % unit != 0 ||
      layers / unit < strategy.pp)
    return std::nullopt;
  const double dense = work.blocks[0].time.total().value;
  const double modules =
      input.model.mtp_layers > 0
          ? at(work.blocks, workload::kPredictionKind).time.total().value * input.model.mtp_layers
          : 0;
  SplitBalance balance{.stages = strategy.pp,
                       .pieces = layers / unit,
                       .block = dense * unit,
                       .output = work.embedding_and_head.total().value + modules};
  if (has_experts(input.model)) {
    const int first = dense_layers(input.model);
    if (first > (unit == 1 ? layers / strategy.pp : 0)) return std::nullopt;
    const double expert = work.blocks[1].time.total().value;
    balance.block = expert * unit;
    balance.saved = first * (expert - dense);
  }
  // Counts of blocks are whole numbers of 32 bits.
  constexpr double kMost = 1e6;
  if (balance.block <= 0 || balance.output > kMost * balance.block) return std::nullopt;
  return balance;
}

}  // namespace

void overlap_exchanges(StepBreakdown& slot) {
  constexpr double kSlower = 132.0 / 112;
  if (slot.ep_comm.value <= 0) return;
  for (Seconds* part : {&slot.matmul, &slot.attention, &slot.passes})
    *part = *part * kSlower;
  const Seconds beside = slot.matmul + slot.attention + slot.passes;
  slot.ep_comm -= std::min(slot.ep_comm, beside);
}

int output_stage(const workload::Strategy& strategy) {
  return strategy.schedule == PipelineSchedule::kZbV ? 0 : strategy.pp - 1;
}

int tables_of(const EstimateInput& input, int stage) {
  const int last = output_stage(input.strategy);
  if (last == 0) return stage != 0 ? 0 : input.model.tied_embeddings ? 1 : 2;
  if (stage != last) return stage == 0 ? 1 : 0;
  return input.model.mtp_layers > 0 && !input.model.tied_embeddings ? 2 : 1;
}

StageSplit stage_split(const EstimateInput& input, const MicroBatchWork& work, int micro_batches) {
  StageSplit split;
  split.blocks = blocks_of(input);
  const int output = output_stage(input.strategy);
  Seconds slowest{-1};
  double heaviest = -1;
  for (int stage = 0; stage < input.strategy.pp; ++stage) {
    const BlockCounts& blocks = at(split.blocks, stage);
    const Seconds time = slot_of(input, work, blocks, stage == output);
    double parameters = 0;
    for (int kind = 0; kind < workload::kBlockKinds; ++kind)
      parameters += at(work.blocks, kind).parameters.total() * blocks[kind];
    parameters += work.table * tables_of(input, stage);
    if (time > slowest) split.slowest = stage;
    if (parameters > heaviest) split.heaviest = stage;
    slowest = std::max(slowest, time);
    heaviest = std::max(heaviest, parameters);
  }
  add_fullest(split, input.strategy.schedule);
  split.makespan = makespan_of(input, work, split.blocks, micro_batches);
  return split;
}

std::vector<int> balanced_layers(const EstimateInput& input, const MicroBatchWork& work) {
  const auto balance = balance_of(input, work);
  if (!balance) return {};
  const int stages = input.strategy.pp;
  const int unit = input.strategy.virtual_stages;
  const int fewest = input.model.layers / stages;
  const int most = (input.model.layers + stages - 1) / stages;
  const double block = balance->block / unit;
  // With more than two stages, one has neither the output layer nor blocks without experts.
  const double even =
      std::max(most * block - (stages == 2 ? balance->saved : 0), fewest * block + balance->output);
  const double least = balance->least_time();
  if (least >= even * (1 - kRounding)) return {};
  std::vector<int> layers = balance->split(least);
  for (int& count : layers)
    count *= unit;
  // The even split of two has the larger first.
  if (layers.front() < (stages == 2 ? most : fewest)) return {};
  return layers;
}

std::optional<Seconds> balanced_slot(const EstimateInput& input, const MicroBatchWork& work) {
  const auto balance = balance_of(input, work);
  if (!balance) return std::nullopt;
  return Seconds{balance->least_time() * (1 - kRounding)};
}

Seconds mean_slot(const EstimateInput& input, const MicroBatchWork& work) {
  const auto time = [](const BlockWork& block) {
    return (block.time.total() - block.time.ep_comm).value;
  };
  const BlockCounts counts = all_blocks(input.model);
  double all = 0;
  for (int kind = 0; kind < workload::kBlockKinds; ++kind)
    all += time(at(work.blocks, kind)) * counts[kind];
  all += work.embedding_and_head.total().value;
  return Seconds{all / input.strategy.pp * (1 - kRounding)};
}

}  // namespace regatta::plan
