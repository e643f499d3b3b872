// pipeline/pipeline_simulation.h: one step of a pipeline, pass by pass: start and end of each, the
// makespan, and the memory.
#pragma once

#include <vector>

#include "regatta/base/core/result.h"
#include "regatta/base/core/units.h"
#include "regatta/model/pipeline/pipeline_order.h"

namespace regatta::pipeline {

// The times of one micro-batch in one part of the model.
struct PartTimes {
  Seconds forward{};
  Seconds input_gradient{};
  Seconds weight_gradient{};  // a whole backward takes both
};

struct PipelineTimes {
  std::vector<PartTimes> parts;  // [stage * parts_of(shape) + part]
  // Between stage s and s + 1, either way; the last one: between the last stage and the first,
  // which only interleaved crosses.
  std::vector<Seconds> messages;
  // A forward and a backward that overlap take this share of the sum of their times.
  double overlapped_share = 1;
  bool is_blocking = false;  // a stage does nothing else while it sends
};

// The same times on every part and between all stages.
PipelineTimes equal_times(const PipelineShape& shape, const PartTimes& part, Seconds message);

struct PassInterval {
  Seconds start{};
  Seconds end{};
};

struct PipelineSimulation {
  std::vector<std::vector<PassInterval>> spans;  // as the passes of the order
  std::vector<Seconds> busy;                     // of each stage, without its messages
  Seconds makespan{};
};

// Each stage runs its passes in the given order, each as early as possible: a forward waits
// for that of the part of the model before it, a backward or input gradient for that of the part
// after it and for its own forward, a weight gradient for its input gradient, and a result of
// another stage arrives one message later. Messages do not wait for each other. Cost: constant for
// each pass, p * m * parts of them. Fails with kInvalidInput when the order deadlocks or names a
// missing part, or when the sizes of `times` do not fit.
Result<PipelineSimulation> simulate_pipeline(const PipelineShape& shape, const PipelineOrder& order,
                                             const PipelineTimes& times);

// The most that each stage holds at one time, when a micro-batch in part k of stage s holds
// sizes[s * parts_of(shape) + k] from the start of its forward to the end of its last gradient. A
// property of the order alone, whatever the times.
std::vector<double> peak_activations(const PipelineShape& shape, const PipelineOrder& order,
                                     const std::vector<double>& sizes);

}  // namespace regatta::pipeline
