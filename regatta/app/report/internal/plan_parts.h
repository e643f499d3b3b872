// report/internal/plan_parts.h: the parts that texts and JSON of GPU plans share.
#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "regatta/base/core/units.h"
#include "regatta/model/cost/software_stack.h"
#include "regatta/planning/plan/plan_search.h"
#include "regatta/planning/replay/replay.h"

namespace regatta::report {

// "12.3 %"
std::string share_of(Seconds part, Seconds whole);

// The parts of a step, with their shares.
std::string step_parts_table(const plan::Plan& plan);

// The share of its memory that a device of the fullest stage uses.
std::string stage_memory_text(const plan::PlanningProblem& problem, const plan::Plan& plan);

// "nemo", "nemo calibrated on 6 runs of runs.csv"
std::string stack_text(const cost::SoftwareStack& stack);
// Adds what the stack was calibrated on, if it was.
void add_calibration(nlohmann::json& plan, const cost::SoftwareStack& stack);

nlohmann::json score_json(const replay::PredictionScore& score);

}  // namespace regatta::report
