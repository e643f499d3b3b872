#include <benchmark/benchmark.h>

#include "regatta/model/pipeline/closed_form.h"

namespace regatta::pipeline {
namespace {

const PartTimes kPart{{2e-3}, {2e-3}, {1.5e-3}};
constexpr Seconds kMessage{1e-4};

Shape shape_of(const benchmark::State& state) {
  const auto schedule = static_cast<workload::Schedule>(state.range(0));
  const int v = schedule == workload::Schedule::kInterleaved ? 2 : 1;
  return {.schedule = schedule, .stages = 16, .micro_batches = 64, .virtual_stages = v};
}

void bm_makespan(benchmark::State& state) {
  Shape shape = shape_of(state);
  for (auto _ : state) {
    benchmark::DoNotOptimize(shape);
    benchmark::DoNotOptimize(makespan(shape, kPart, kMessage));
  }
}
BENCHMARK(bm_makespan)->DenseRange(0, 4);

void bm_simulate(benchmark::State& state) {
  const Shape shape = shape_of(state);
  const auto order = order_of(shape);
  const Times times = equal_times(shape, kPart, kMessage);
  for (auto _ : state)
    benchmark::DoNotOptimize(simulate(shape, *order, times));
  double pieces = 0;
  for (const auto& stage : *order)
    pieces += static_cast<double>(stage.size());
  state.counters["pieces/s"] =
      benchmark::Counter(pieces, benchmark::Counter::kIsIterationInvariantRate);
}
BENCHMARK(bm_simulate)->DenseRange(0, 4);

}  // namespace
}  // namespace regatta::pipeline
