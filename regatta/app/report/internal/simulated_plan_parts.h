// report/internal/simulated_plan_parts.h: what texts say of a search whose steps were simulated
// beside what they say of every search.
#pragma once

#include <span>
#include <string>

#include "regatta/planning/plan/plan_search.h"

namespace regatta::report {

// "420 plans of 35 strategies evaluated, 3 strategies ruled out".
std::string evaluation_count_text(const plan::SimulatedSearchResult& result);

// "A" for the placement that the table names first, "B" for the next, "27" behind "Z".
std::string placement_label(std::span<const plan::Plan> plans, const plan::Plan& plan);
// A line for each of them: placements are long and few.
std::string placement_legend(std::span<const plan::Plan> plans);

// The strategies that were ruled out, by reason; "" where nothing was.
std::string rejected_table(const plan::SimulatedSearchResult& result);

}  // namespace regatta::report
