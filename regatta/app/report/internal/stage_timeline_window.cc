#include "regatta/app/report/internal/stage_timeline_window.h"

#include <algorithm>

#include "regatta/app/report/internal/html_text.h"

namespace regatta::report {
namespace {

using plan::StageSpan;
using plan::StageWork;

constexpr double kPiece = 17;  // pixels that a forward should have: a number of two digits fits
constexpr double kLeastWidth = 1110;
constexpr double kMostWidth = 3200;
constexpr double kGap = 46;  // for what is left out
constexpr double kTickDistance = 110;
// Leaving out less than this share of a step is not worth it.
constexpr double kWorthLeavingOut = 0.15;

bool is_forward(const StageSpan& span) {
  return span.work == StageWork::kForward;
}
bool has_micro_batch(const StageSpan& span) {
  return span.micro_batch >= 0;
}

// The longest time until a stage does its first backward, and from its last forward on to the last
// gradient: what fills and empties the pipeline.
struct Slopes {
  Seconds fill;
  Seconds drain;
  Seconds forward;  // of the shortest, with what waits for it
};

Slopes slopes_of(const plan::StageTimeline& timeline) {
  Slopes slopes{.fill = {}, .drain = {}, .forward = timeline.makespan};
  for (const auto& row : timeline.rows) {
    Seconds last = timeline.pipeline_end;
    bool has_turned = false;
    for (const StageSpan& span : row) {
      if (!has_micro_batch(span)) continue;
      if (is_forward(span)) {
        last = span.end;
        slopes.forward = std::min(slopes.forward, span.end - span.start);
      } else if (!has_turned) {
        has_turned = true;
        slopes.fill = std::max(slopes.fill, span.start);
      }
    }
    slopes.drain = std::max(slopes.drain, timeline.pipeline_end - last);
  }
  return slopes;
}

}  // namespace

std::optional<double> TimelineWindows::x(Seconds time) const {
  for (const TimelineWindow& window : shown) {
    if (time >= window.start && time <= window.end)
      return window.x + (time - window.start).value * scale;
  }
  return std::nullopt;
}

TimelineWindows timeline_windows(const plan::StageTimeline& timeline) {
  const Slopes slopes = slopes_of(timeline);
  // Some pieces of the steady part on either side.
  const Seconds steady = slopes.forward * 10;
  const Seconds head = slopes.fill * 1.1 + steady;
  const Seconds tail = timeline.makespan - timeline.pipeline_end + slopes.drain * 1.1 + steady;
  const bool is_whole = head + tail > timeline.makespan * (1 - kWorthLeavingOut) ||
                        timeline.makespan / slopes.forward * kPiece < kLeastWidth;
  TimelineWindows windows;
  const Seconds drawn = is_whole ? timeline.makespan : head + tail;
  const double forwards = drawn / slopes.forward;
  const double pixels = std::clamp(forwards * kPiece, kLeastWidth, kMostWidth);
  windows.scale = pixels / drawn.value;
  windows.width = pixels + (is_whole ? 0 : kGap);
  if (is_whole) {
    windows.shown = {{Seconds{}, timeline.makespan, 0}};
  } else {
    windows.shown = {
        {Seconds{}, head, 0},
        {timeline.makespan - tail, timeline.makespan, head.value * windows.scale + kGap}};
  }
  const int count =
      static_cast<int>(std::max(4.0, timeline.makespan.value * windows.scale / kTickDistance));
  for (const double tick : nice_ticks(timeline.makespan.value, count)) {
    const auto x = windows.x({tick});
    if (!x) continue;
    windows.ticks.push_back({tick});
    if (Seconds{tick} <= slopes.fill) windows.steady_x = *x;
  }
  return windows;
}

}  // namespace regatta::report
