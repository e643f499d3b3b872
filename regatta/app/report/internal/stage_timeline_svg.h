// report/internal/stage_timeline_svg.h: the stages of a GPU plan at work, as a picture: a row a
// stage, colours by what it does, numbers of micro-batches where they fit.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "regatta/app/report/internal/stage_timeline_window.h"
#include "regatta/planning/plan/stage_timeline.h"

namespace regatta::report {

// HTML for html_page(). The middle of a long step is left out.
std::string stage_timeline_svg(const plan::StageTimeline& timeline);

// Classes and names of the colors that the picture has, for its legend.
std::vector<std::pair<std::string, std::string>> stage_timeline_legend(
    const plan::StageTimeline& timeline);

// A picture with a row a stage over the time of a step: the names of the rows stay where they are,
// the shapes scroll and open at the steady state.
struct StagePicture {
  std::string_view label;  // text
  std::string names;       // SVG, kStageNames pixels wide
  std::string shapes;      // SVG, as wide as the windows
  double height = 0;
};
inline constexpr double kStageNames = 62;
std::string stage_picture(const StagePicture& picture, const TimelineWindows& windows);

}  // namespace regatta::report
