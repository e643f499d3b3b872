// cli/internal/plan_text.h: what plans for GPUs of all kinds are shown as: where the step goes,
// what a device holds.
#pragma once

#include <string>

#include "regatta/base/core/units.h"
#include "regatta/model/cost/memory.h"
#include "regatta/planning/plan/estimated_plan_search.h"

namespace regatta::cli {

// "12.3 %"
std::string share_text(Seconds part, Seconds all);

// Prints the parts of the step as a table.
void print_parts(const plan::StepBreakdown& step);

// Prints what a device of `worst_stage` holds, of so much.
void print_memory(const plan::Estimate& estimate, Bytes capacity);

}  // namespace regatta::cli
