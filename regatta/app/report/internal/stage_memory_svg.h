// report/internal/stage_memory_svg.h: what a device of each stage of a GPU plan holds over the
// step, as a picture below that of its timeline, with the same axis of time.
#pragma once

#include <string>

#include "regatta/base/core/units.h"
#include "regatta/planning/plan/stage_timeline.h"

namespace regatta::report {

// HTML for html_page(). At most 8 stages are drawn: the first, the last, the one that holds most,
// and others evenly between. `device`: the memory of one.
std::string stage_memory_svg(const plan::StageTimeline& timeline, Bytes device);

}  // namespace regatta::report
