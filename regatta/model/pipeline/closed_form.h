// pipeline/closed_form.h: the time of one step and the memory of a stage without a simulation, when
// all parts of the model take the same times: some dozen operations and no allocation, for the
// inner loop of a search.
//
// With p, m, v of the shape; F, I, W the forward, input gradient and weight gradient of one
// micro-batch in one part, B = I + W; c the message between two stages (0 when p = 1). The formulas
// are the longest paths through the graph of passes (max-plus algebra: Baccelli et al.,
// "Synchronization and Linearity", 1992), found in simulations and held against them by the tests.
//
// 1F1B, always exact: a path turns around at the last stage, or earlier, at most once every p
// micro-batches, and each message on it adds its time:
//   (m + p - 1) (F + B) + 2 (p - 1) c + 2 (m - 1 - ceil((m - 1) / p)) c
// With c = 0 the bubble is (p - 1) (F + B): Narayanan et al., SC'21, section 2.2.1.
//
// Interleaved, with N and n micro-batches in the largest and the smallest group (pipeline_order.h),
// exact while c <= min(F, B) and, for c > 0 and N > n, v <= 3 or v = 4 with p > 2: in the first and
// in the last group, a part may begin no sooner than the one before it has come down all p stages:
//   (v m + p - 1) (F + B) + 2 (p - 1) c
//     + (v - 1) (max(0, p (F + c) - N F) + max(0, p (B + c) - n B))
// With c = 0 and m >= p the bubble is (p - 1) (F + B) of parts: the same, section 2.2.2.
//
// ZB-H1, exact while c <= min(F, I). With c = 0 and k = min(m, p) - 1:
//   (m + p - 1) (F + I) + m W - k min(F, I, W)
// that is, from m = p on, a bubble of (p - 1) (F + I - min(F, I, W)); where W is the least it is
// the (p - 1) (F + I - W) of Qi et al., arXiv 2401.10241, section 2.
//
// ZB-V, exact while c <= min(F, I, W) / 2 and m <= p or m >= 2 p - 1: the longest of 4 or 12 paths.
// From m = 2 p - 1 on and with c = 0 and F = I = W it is 2 m (F + I + W) + (p - 1) F: no stage
// waits once it has begun (the same paper).
//
// DualPipe, exact while c <= min(F, I, W) / 2: with h = p / 2 - 1 and c = 0
//   m (F + I + W) + max(2 h F + h max(0, I - W), (h - 1) F + h I + h max(0, I - W))
// For F = I >= W it is the h (F&B + B - 3 W) of DeepSeek-V3, section 3.2.1, with F&B = F + B; else
// that figure is near it.
#pragma once

#include <optional>

#include "regatta/base/core/units.h"
#include "regatta/model/pipeline/pipeline_order.h"
#include "regatta/model/pipeline/pipeline_simulation.h"

namespace regatta::pipeline {

// The makespan that simulate_pipeline() gives for equal_times(shape, part, message), without
// blocking and with an overlapped_share of 1; nothing where the closed form is not known to be
// exact (above): there the caller simulates. `shape` must pass check_shape(), no time may be
// negative.
std::optional<Seconds> makespan(const PipelineShape& shape, const PartTimes& part, Seconds message);

// The same formula for every shape: a lower bound of the makespan, so that a search may drop shapes
// that it shows to be too slow.
Seconds makespan_bound(const PipelineShape& shape, const PartTimes& part, Seconds message);

// The most pairs of a micro-batch and a part that a stage holds at one time: 1F1B min(m, p - s);
// interleaved warmup_forwards() + 1, at most m v; ZB-H1 min(m, p); ZB-V min(2 m, 2 p, m + 1 + s),
// in halves of a stage; DualPipe p + 1. Sources: as in order.h.
int peak_activations(const PipelineShape& shape, int stage);

}  // namespace regatta::pipeline
