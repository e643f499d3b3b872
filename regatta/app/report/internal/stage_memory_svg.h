// report/internal/stage_memory_svg.h: what a device of each stage of a GPU plan holds over the
// step, as a picture below that of its timeline, with the same axis of time.
#pragma once

#include <string>

#include "regatta/base/core/units.h"
#include "regatta/planning/plan/stage_timeline.h"

namespace regatta::report {

// An <svg> for a page with report_css() and gpu_plan_css(). Of many stages some are drawn: the
// first, the last, that which holds most, and others evenly between. `device`: what one has.
std::string stage_memory_svg(const plan::StageTimeline& timeline, Bytes device);

}  // namespace regatta::report
