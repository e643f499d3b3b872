#include <benchmark/benchmark.h>

#include "regatta/model/pipeline/closed_form.h"

namespace regatta::pipeline {
namespace {

const PartTimes kPart{{2e-3}, {2e-3}, {1.5e-3}};
constexpr Seconds kMessage{1e-4};

PipelineShape shape_of(const benchmark::State& state) {
  const auto schedule = static_cast<workload::PipelineSchedule>(state.range(0));
  const int v = schedule == workload::PipelineSchedule::kInterleaved ? 2 : 1;
  return {.schedule = schedule, .stages = 16, .micro_batches = 64, .virtual_stages = v};
}

void bm_makespan(benchmark::State& state) {
  PipelineShape shape = shape_of(state);
  for (auto _ : state) {
    benchmark::DoNotOptimize(shape);
    benchmark::DoNotOptimize(makespan(shape, kPart, kMessage));
  }
}
BENCHMARK(bm_makespan)->DenseRange(0, 4);

void bm_simulate(benchmark::State& state) {
  const PipelineShape shape = shape_of(state);
  const auto order = pipeline_order(shape);
  const PipelineTimes times = equal_times(shape, kPart, kMessage);
  for (auto _ : state)
    benchmark::DoNotOptimize(simulate_pipeline(shape, *order, times));
  double passes = 0;
  for (const auto& stage : *order)
    passes += static_cast<double>(stage.size());
  state.counters["pieces/s"] =
      benchmark::Counter(passes, benchmark::Counter::kIsIterationInvariantRate);
}
BENCHMARK(bm_simulate)->DenseRange(0, 4);

}  // namespace
}  // namespace regatta::pipeline
