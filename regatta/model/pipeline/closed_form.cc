#include "regatta/model/pipeline/closed_form.h"

#include <algorithm>

namespace regatta::pipeline {
namespace {

using workload::PipelineSchedule;

// The numbers of a formula in their usual letters.
struct FormulaTerms {
  double p, m, v;
  double f, b, w;  // forward, input gradient, weight gradient
  double c;        // message
};

// Messages that a path crosses on top of a first path down and up, when it may turn around at each
// of `turns` micro-batches: a path through d stages and back passes d + 1 of them, and the longest
// paths are of p stages.
int extra_messages(int turns, int stages) {
  return turns < 1 ? 0 : 2 * (turns - (turns + stages - 1) / stages);
}

double one_forward_one_backward(const PipelineShape& shape, const FormulaTerms& x) {
  const int messages =
      2 * (shape.stages - 1) + extra_messages(shape.micro_batches - 1, shape.stages);
  return (x.m + x.p - 1) * (x.f + x.b + x.w) + messages * x.c;
}

double interleaved(const PipelineShape& shape, const FormulaTerms& x) {
  const int groups = std::max(1, shape.micro_batches / shape.stages);
  const int smallest = shape.micro_batches / groups;
  const double back = x.b + x.w;
  const double wait_forward = x.p * (x.f + x.c) - largest_group(shape) * x.f;
  const double wait_back = x.p * (back + x.c) - smallest * back;
  return (x.v * x.m + x.p - 1) * (x.f + back) + 2 * (x.p - 1) * x.c +
         (x.v - 1) * (std::max(0.0, wait_forward) + std::max(0.0, wait_back));
}

// Three paths: at the end through input gradients alone, at the start through forwards alone, or
// through both, back and forth between the stages.
double zb_h1(const PipelineShape& shape, const FormulaTerms& x) {
  const int p = shape.stages;
  const int m = shape.micro_batches;
  const double k = std::min(m, p) - 1;
  const double base = (x.m + x.p - 1) * (x.f + x.b) + x.m * x.w;
  const double down_and_up = 2 * (x.p - 1);
  const double through_forwards = m == 1   ? down_and_up
                                  : m <= p ? down_and_up + x.m - 3
                                           : 3 * (x.p - 1);
  const double full = (down_and_up + extra_messages(std::min(m - 1, p), p)) * x.c - k * x.w +
                      extra_messages(m - 1 - p, p) * std::max(0.0, x.c - x.w / 2);
  return base + std::max({full, through_forwards * x.c - k * x.b, down_and_up * x.c - k * x.f});
}

// Up to p micro-batches: the forwards and gradients of all go down and up the V one behind the
// other, and meet in none of the rounds that more micro-batches fill.
double short_zb_v(const FormulaTerms& x, double m) {
  const double k = m - 1;
  const double alone = 2 * x.p * (x.f + x.b) + 2 * x.w;
  const double down_and_up = 4 * (x.p - 1) * x.c;
  return alone +
         std::max({down_and_up + 2 * k * (x.b + x.w),  //
                   down_and_up + 2 * k * x.f, down_and_up + k * (x.f + x.b + 2 * x.w - 2 * x.c),
                   down_and_up + k * (2 * x.f - x.b + x.w - 2 * x.c)});
}

// The paths through the V that are longer than the work of a stage, each for other F, I and W.
double zb_v(const PipelineShape& shape, const FormulaTerms& x) {
  const double k = x.p - 1;
  const double work = 2 * x.m * (x.f + x.b + x.w);
  if (shape.stages == 1) return work;
  if (shape.micro_batches < 2 * shape.stages - 1)
    return std::max(short_zb_v(x, std::min(x.m, x.p)), work + k * (x.f + x.c));
  const auto [p, m, v, f, b, w, c] = x;
  const double bubble = std::max({
      b + (k - 1) * w + 3 * k * c,
      k * b + (5 * k - 2) * c,
      f + (k - 1) * w + (3 * k - 2) * c,
      (k - 1) * f + b + (5 * k - 2) * c,
      k * f - w + 5 * k * c,
      (2 * k - 1) * f - (k - 1) * b + (3 * k - 2) * c,
      2 * k * f - k * b - w + 3 * k * c,
      2 * k * (b - w) + (6 * k - 2) * c,
      (k - 1) * f + (k + 1) * b - 2 * k * w + (6 * k - 2) * c,
      (2 * k - 1) * f + b - 2 * k * w + (4 * k - 2) * c,
      k * (f + b) - (2 * k + 1) * w + 6 * k * c,
      2 * k * f - (2 * k + 1) * w + 4 * k * c,
  });
  return work + bubble;
}

// Overlapped pairs wait for a message of both sides, but for one round in p.
double dual_pipe(const PipelineShape& shape, const FormulaTerms& x) {
  const auto [p, m, v, f, b, w, c] = x;
  const double h = p / 2 - 1;
  const int hidden = (shape.micro_batches - 4) / shape.stages;
  const double messages = m - hidden + 3 * h - 1;
  return m * (f + b + w) + messages * c +
         std::max({2 * h * f - h * c, 2 * h * f + h * (b - w), (h - 1) * f + h * b,
                   (h - 1) * f + h * (2 * b - w) + h * c});
}

FormulaTerms formula_terms(const PipelineShape& shape, const PartTimes& part, Seconds message) {
  return {static_cast<double>(shape.stages),
          static_cast<double>(shape.micro_batches),
          static_cast<double>(shape.virtual_stages),
          part.forward.value,
          part.input_gradient.value,
          part.weight_gradient.value,
          shape.stages == 1 ? 0 : message.value};
}

bool is_exact(const PipelineShape& shape, const FormulaTerms& x) {
  const int m = shape.micro_batches;
  const int p = shape.stages;
  switch (shape.schedule) {
    case PipelineSchedule::k1F1B:
      return true;
    case PipelineSchedule::kInterleaved: {
      const bool is_even = m % std::max(1, m / p) == 0;
      const bool is_known = is_even || x.c == 0 || x.v <= 3 || (x.v == 4 && p > 2);
      return is_known && x.c <= std::min(x.f, x.b + x.w);
    }
    case PipelineSchedule::kZbH1:
      return x.c <= std::min(x.f, x.b);
    case PipelineSchedule::kZbV:
      return (m <= p || m >= 2 * p - 1) && 2 * x.c <= std::min({x.f, x.b, x.w});
    case PipelineSchedule::kDualPipe:
      return 2 * x.c <= std::min({x.f, x.b, x.w});
  }
  return false;
}

double formula(const PipelineShape& shape, const FormulaTerms& x) {
  switch (shape.schedule) {
    case PipelineSchedule::k1F1B:
      return one_forward_one_backward(shape, x);
    case PipelineSchedule::kInterleaved:
      return interleaved(shape, x);
    case PipelineSchedule::kZbH1:
      return zb_h1(shape, x);
    case PipelineSchedule::kZbV:
      return zb_v(shape, x);
    case PipelineSchedule::kDualPipe:
      return dual_pipe(shape, x);
  }
  return 0;
}

}  // namespace

std::optional<Seconds> makespan(const PipelineShape& shape, const PartTimes& part,
                                Seconds message) {
  const FormulaTerms x = formula_terms(shape, part, message);
  if (!is_exact(shape, x)) return std::nullopt;
  return Seconds{formula(shape, x)};
}

Seconds makespan_bound(const PipelineShape& shape, const PartTimes& part, Seconds message) {
  return {formula(shape, formula_terms(shape, part, message))};
}

int peak_activations(const PipelineShape& shape, int stage) {
  const int m = shape.micro_batches;
  const int p = shape.stages;
  switch (shape.schedule) {
    case PipelineSchedule::k1F1B:
      return std::min(m, p - stage);
    case PipelineSchedule::kInterleaved:
      return std::min(m * shape.virtual_stages, warmup_forwards(shape, stage) + 1);
    case PipelineSchedule::kZbH1:
      return std::min(m, p);
    case PipelineSchedule::kZbV:
      return std::min({2 * m, 2 * p, m + 1 + stage});
    case PipelineSchedule::kDualPipe:
      return p + 1;
  }
  return 0;
}

}  // namespace regatta::pipeline
