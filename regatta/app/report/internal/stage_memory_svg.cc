#include "regatta/app/report/internal/stage_memory_svg.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <set>
#include <string>

#include <fmt/format.h>

#include "regatta/app/report/internal/stage_timeline_svg.h"
#include "regatta/app/report/internal/stage_timeline_window.h"
#include "regatta/app/report/internal/svg.h"
#include "regatta/base/core/ids.h"
#include "regatta/base/core/units.h"

namespace regatta::report {
namespace {

using plan::MemoryCurve;
using plan::MemoryPoint;

constexpr double kTop = 6;
constexpr double kRow = 46;
constexpr double kPitch = 58;
constexpr std::size_t kMost = 8;  // stages

std::set<std::size_t> shown_stages(const plan::StageTimeline& timeline) {
  const std::size_t stages = timeline.memory.size();
  std::set<std::size_t> shown;
  if (stages <= kMost) {
    for (std::size_t stage = 0; stage < stages; ++stage)
      shown.insert(stage);
    return shown;
  }
  for (std::size_t i = 0; i + 1 < kMost; ++i)
    shown.insert(i * (stages - 1) / (kMost - 2));
  shown.insert(as_index(timeline.estimate.worst_stage));
  return shown;
}

class MemoryDrawing {
 public:
  MemoryDrawing(const plan::StageTimeline& timeline, Bytes device)
      : timeline_(timeline),
        windows_(timeline_windows(timeline)),
        device_(static_cast<double>(device.value)),
        most_(device_) {
    for (const MemoryCurve& line : timeline.memory)
      most_ = std::max(most_, peak_of(line));
  }

  std::string svg() const {
    StagePicture picture;
    picture.label = "memory of a device of each stage over the step";
    picture.height = kTop;
    for (const std::size_t stage : shown_stages(timeline_)) {
      picture.names += svg_text("", {0, picture.height + 18}, fmt::format("stage {}", stage)) +
                       svg_text("", {0, picture.height + 32},
                                format_bytes(peak_of(at(timeline_.memory, stage))));
      picture.shapes += row(stage, picture.height);
      picture.height += kPitch;
    }
    return stage_picture(picture, windows_);
  }

 private:
  std::string row(std::size_t stage, double top) const {
    const MemoryCurve& line = timeline_.memory[stage];
    const double always = line.back().bytes;  // nothing is in flight at the end
    const double peak = peak_of(line);
    std::string svg;
    for (const TimelineWindow& window : windows_.shown) {
      const double width = windows_.width_of(window);
      svg += svg_rect("ground", {window.x, top, width, kRow});
      svg += svg_path("activations", area(line, window, top),
                      {.title = fmt::format("stage {}: at most {}, {} of it activations", stage,
                                            format_bytes(peak), format_bytes(peak - always))});
      svg += svg_rect("always", {window.x, y(always, top), width, top + kRow - y(always, top)});
      svg += svg_line("limit", {window.x, y(device_, top)}, {window.x + width, y(device_, top)});
    }
    return svg;
  }

  double y(double bytes, double top) const { return top + kRow * (1 - bytes / most_); }

  // Below the line, within the window.
  std::string area(const MemoryCurve& line, const TimelineWindow& window, double top) const {
    const auto x = [&](Seconds at) {
      return window.x + (at - window.start).value * windows_.scale;
    };
    const auto after =
        std::upper_bound(line.begin(), line.end(), window.start,
                         [](Seconds time, const MemoryPoint& point) { return time < point.at; });
    const double first = after == line.begin() ? 0 : std::prev(after)->bytes;
    std::string path = fmt::format("M{:.1f} {:.1f}V{:.1f}", window.x, top + kRow, y(first, top));
    for (auto point = after; point != line.end() && point->at < window.end; ++point)
      path += fmt::format("H{:.1f}V{:.1f}", x(point->at), y(point->bytes, top));
    return path + fmt::format("H{:.1f}V{:.1f}Z", x(window.end), top + kRow);
  }

  const plan::StageTimeline& timeline_;
  TimelineWindows windows_;
  double device_;
  double most_;  // of the axis
};

}  // namespace

std::string stage_memory_svg(const plan::StageTimeline& timeline, Bytes device) {
  return MemoryDrawing(timeline, device).svg();
}

}  // namespace regatta::report
