// plan/plan_difference.h: why one GPU plan is faster than another: part by part of the step.
#pragma once

#include <string>
#include <vector>

#include "regatta/base/core/units.h"
#include "regatta/planning/plan/plan_metrics.h"

namespace regatta::plan {

// What is compared: a plan's step by its parts, and its memory.
struct ComparedPlan {
  std::string name;
  std::vector<NamedStepPart> parts;
  double memory = 0;  // bytes a device

  Seconds step() const;
};
ComparedPlan compared_plan(const std::string& name, const EstimatedPlan& plan);

struct PartDifference {
  std::string part;
  Seconds a;
  Seconds b;
};

struct PlanDifference {
  std::vector<PartDifference> parts;  // that differ by more than a thousandth of the step, the
                                      // largest first
  // "a is 12.3 % faster than b: it saves dp_comm 1.20 s and bubble 310 ms, and pays tp_comm 90 ms"
  std::string sentence;
};
PlanDifference compare_plans(const ComparedPlan& a, const ComparedPlan& b);

}  // namespace regatta::plan
