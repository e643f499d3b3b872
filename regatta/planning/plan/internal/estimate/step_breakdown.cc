#include <iterator>

#include "regatta/planning/plan/estimate.h"

namespace regatta::plan {
namespace {

struct Part {
  const char* name;
  Seconds StepBreakdown::*time;
};

// Every part once, so that none is forgotten.
constexpr Part kParts[] = {
    {"matmul", &StepBreakdown::matmul},   {"attention", &StepBreakdown::attention},
    {"passes", &StepBreakdown::passes},   {"recompute", &StepBreakdown::recompute},
    {"host", &StepBreakdown::host},       {"tp_comm", &StepBreakdown::tp_comm},
    {"cp_comm", &StepBreakdown::cp_comm}, {"ep_comm", &StepBreakdown::ep_comm},
    {"pp_comm", &StepBreakdown::pp_comm}, {"dp_comm", &StepBreakdown::dp_comm},
    {"bubble", &StepBreakdown::bubble},   {"optimizer", &StepBreakdown::optimizer},
    {"offload", &StepBreakdown::offload}, {"stragglers", &StepBreakdown::stragglers},
};
static_assert(sizeof(StepBreakdown) == sizeof(Seconds) * std::size(kParts));

}  // namespace

StepBreakdown& StepBreakdown::operator+=(const StepBreakdown& other) {
  for (const auto& [name, part] : kParts)
    this->*part += other.*part;
  return *this;
}

StepBreakdown& StepBreakdown::operator*=(double factor) {
  for (const auto& [name, part] : kParts)
    this->*part = this->*part * factor;
  return *this;
}

std::vector<NamedStepPart> named_step_parts(const StepBreakdown& step) {
  std::vector<NamedStepPart> parts;
  parts.reserve(std::size(kParts));
  for (const auto& [name, part] : kParts)
    parts.push_back({name, step.*part});
  return parts;
}

Seconds straggler_time(const StepBreakdown& step, double servers) {
  const Seconds computed = step.matmul + step.attention + step.passes + step.recompute;
  return computed * (cost::straggler_factor(servers) - 1);
}

Seconds StepBreakdown::total() const {
  Seconds sum;
  for (const auto& [name, part] : kParts)
    sum += this->*part;
  return sum;
}

}  // namespace regatta::plan
