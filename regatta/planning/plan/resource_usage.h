// plan/resource_usage.h: what a GPU plan uses up for a number of tokens: time, devices, energy,
// money.
#pragma once

#include "regatta/base/core/units.h"
#include "regatta/planning/plan/estimated_plan_search.h"

namespace regatta::plan {

struct ResourceUsage {
  Seconds time;
  double device_hours = 0;
  double kilowatt_hours = 0;  // of the servers under load; 0: theirs is not known
  double cost = 0;            // in the currency of the price
};

// Of a step that takes `step` on all devices of the problem; `price` is of a device and hour.
ResourceUsage resource_usage(const PlanningProblem& problem, Seconds step, double tokens,
                             double price);

// Of the whole cluster.
double tokens_per_step(const PlanningProblem& problem);

}  // namespace regatta::plan
