#include <iterator>

#include "regatta/plan/estimate.h"

namespace regatta::plan {
namespace {

// Every part once, so that none is forgotten.
constexpr Seconds StepBreakdown::*kParts[] = {
    &StepBreakdown::matmul,    &StepBreakdown::attention, &StepBreakdown::passes,
    &StepBreakdown::recompute, &StepBreakdown::host,      &StepBreakdown::tp_comm,
    &StepBreakdown::cp_comm,   &StepBreakdown::ep_comm,   &StepBreakdown::pp_comm,
    &StepBreakdown::dp_comm,   &StepBreakdown::bubble,    &StepBreakdown::optimizer,
    &StepBreakdown::offload,   &StepBreakdown::stragglers};
static_assert(sizeof(StepBreakdown) == sizeof(Seconds) * std::size(kParts));

}  // namespace

StepBreakdown& StepBreakdown::operator+=(const StepBreakdown& other) {
  for (const auto part : kParts)
    this->*part += other.*part;
  return *this;
}

StepBreakdown& StepBreakdown::operator*=(double factor) {
  for (const auto part : kParts)
    this->*part = this->*part * factor;
  return *this;
}

Seconds straggler_time(const StepBreakdown& step, double servers) {
  const Seconds computed = step.matmul + step.attention + step.passes + step.recompute;
  return computed * (cost::slowest_factor(servers) - 1);
}

Seconds StepBreakdown::total() const {
  Seconds sum;
  for (const auto part : kParts)
    sum += this->*part;
  return sum;
}

}  // namespace regatta::plan
