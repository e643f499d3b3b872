// report/internal/plan_parts.h: the tables that texts of GPU plans share.
#pragma once

#include <string>

#include "regatta/base/core/units.h"
#include "regatta/planning/plan/estimated_plan_search.h"

namespace regatta::report {

// "12.3 %"
std::string share_of(Seconds part, Seconds whole);

// The parts of a step, with their shares.
std::string step_parts_table(const plan::StepBreakdown& step);

// The share of `capacity` that a device of the fullest stage uses.
std::string stage_memory_text(const plan::Estimate& estimate, Bytes capacity);

}  // namespace regatta::report
