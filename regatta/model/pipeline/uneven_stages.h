// pipeline/uneven_stages.h: closed form and bound of a step whose stages take different times.
//
// 1F1B, m >= p, with F_s, B_s = I_s + W_s and X_s = F_s + B_s, P(s) the sum of X over the stages
// before s. Before its first backward a stage works on forwards alone, behind its last forward on
// backwards alone; a longest path leaves the first phase in a stage a, and enters the last in a
// stage b. With lo = min(a, b), hi = max(a, b) it takes
//   P(hi) + (p - 1 - a) max(F_0..F_a) + (p - 1 - b) max(B_0..B_b)
// and m - (p - 1) + lo pairs of a forward and a backward between: one in each stage that it passes,
// the rest in the slowest stage x that it reaches. Found in simulations and held against them by
// the tests. With messages it is a bound: a path may then be longer by turning around more often.
#pragma once

#include <optional>

#include "regatta/base/core/units.h"
#include "regatta/model/pipeline/pipeline_order.h"
#include "regatta/model/pipeline/pipeline_simulation.h"

namespace regatta::pipeline {

// The makespan that simulate_pipeline() gives for pipeline_order(shape), for 1F1B with m >= p, no
// messages and no blocking; else nothing. Cost: p^3 / 6 additions. `shape` must pass check_shape(),
// the sizes of `times` must fit it, no time may be negative.
std::optional<Seconds> makespan(const PipelineShape& shape, const PipelineTimes& times);

// Never more than the makespan, any schedule: until the first micro-batch reaches a stage, its
// work, and until the gradients of the last have left the pipeline, for the worst stage; a
// micro-batch alone; for 1F1B the paths above. Cost: linear in the parts, for 1F1B as makespan().
Seconds makespan_bound(const PipelineShape& shape, const PipelineTimes& times);

}  // namespace regatta::pipeline
