// report/internal/stage_timeline_svg.h: the stages of a GPU plan at work, as a picture: a row a
// stage, colours by what it does, numbers of micro-batches where they fit.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "regatta/planning/plan/stage_timeline.h"

namespace regatta::report {

// An <svg> for a page with report_css() and gpu_plan_css(). The middle of a long step is left out.
std::string stage_timeline_svg(const plan::StageTimeline& timeline);

// Classes and names of the colours that the picture has, for its legend.
struct LegendEntry {
  std::string_view style;
  std::string_view name;
};
std::vector<LegendEntry> stage_timeline_legend(const plan::StageTimeline& timeline);

}  // namespace regatta::report
