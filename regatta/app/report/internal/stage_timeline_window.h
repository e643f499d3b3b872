// report/internal/stage_timeline_window.h: which part of a step its drawing shows, and how wide.
#pragma once

#include <optional>
#include <vector>

#include "regatta/base/core/units.h"
#include "regatta/planning/plan/stage_timeline.h"

namespace regatta::report {

// From a time to another, drawn from x on.
struct TimelineWindow {
  Seconds start;
  Seconds end;
  double x = 0;
};

// One window, or two: the middle of a long step, where every stage does the same over and over, is
// left out so that a reader sees single pieces of work.
struct TimelineWindows {
  std::vector<TimelineWindow> shown;
  double scale = 1;            // pixels in a second
  double width = 0;            // pixels, of all
  std::vector<Seconds> ticks;  // of the ruler, those that are shown
  double steady_x = 0;         // the last tick before every stage has done its first backward

  double width_of(const TimelineWindow& window) const {
    return (window.end - window.start).value * scale;
  }

  // Where a time is drawn; nothing for one that is left out.
  std::optional<double> x(Seconds time) const;
};

TimelineWindows timeline_windows(const plan::StageTimeline& timeline);

}  // namespace regatta::report
