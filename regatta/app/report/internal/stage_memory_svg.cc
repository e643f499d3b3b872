#include "regatta/app/report/internal/stage_memory_svg.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <set>
#include <string>

#include <fmt/format.h>

#include "regatta/app/report/internal/stage_timeline_window.h"
#include "regatta/base/core/units.h"

namespace regatta::report {
namespace {

using plan::MemoryCurve;
using plan::MemoryPoint;

constexpr double kMemoryLeft = 62;  // as the timeline above
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
  shown.insert(static_cast<std::size_t>(timeline.estimate.worst_stage));
  return shown;
}

class MemoryDrawing {
 public:
  MemoryDrawing(const plan::StageTimeline& timeline, Bytes device)
      : timeline_(timeline),
        windows_(timeline_windows(timeline, kMemoryLeft)),
        device_(static_cast<double>(device.value)),
        most_(device_) {
    for (const MemoryCurve& line : timeline.memory)
      most_ = std::max(most_, peak_of(line));
  }

  std::string svg() const {
    std::string rows;
    double top = kTop;
    for (const std::size_t stage : shown_stages(timeline_)) {
      rows += row(stage, top);
      top += kPitch;
    }
    return fmt::format(
               "<svg class=\"stages memory\" width=\"{0:.0f}\" height=\"{1:.0f}\" viewBox=\"0 0 "
               "{0:.0f} {1:.0f}\" role=\"img\" aria-label=\"what a device of each stage holds "
               "when\">\n",
               windows_.width + 2, top) +
           rows + "</svg>\n";
  }

 private:
  std::string row(std::size_t stage, double top) const {
    const MemoryCurve& line = timeline_.memory[stage];
    const double always = line.back().bytes;  // nothing is in flight at the end
    const double peak = peak_of(line);
    std::string svg = fmt::format(
        "<text x=\"0\" y=\"{:.1f}\">stage {}</text>\n<text x=\"0\" y=\"{:.1f}\">{}</text>\n",
        top + 18, stage, top + 32, format_bytes(peak));
    for (const TimelineWindow& window : windows_.shown) {
      const double width = (window.end - window.start).value * windows_.scale;
      svg += rect("ground", window.x, top, width, kRow);
      svg += fmt::format(
          "<path class=\"activations\" d=\"{}\"><title>stage {}: at most {}, {} of it "
          "activations</title></path>\n",
          area(line, window, top), stage, format_bytes(peak), format_bytes(peak - always));
      svg += rect("state", window.x, y(always, top), width, top + kRow - y(always, top));
      svg += fmt::format(
          "<line class=\"limit\" x1=\"{:.1f}\" x2=\"{:.1f}\" y1=\"{:.1f}\" y2=\"{:.1f}\"/>\n",
          window.x, window.x + width, y(device_, top), y(device_, top));
    }
    return svg;
  }

  static std::string rect(const char* style, double x, double top, double width, double height) {
    return fmt::format(
        "<rect class=\"{}\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\"/>\n",
        style, x, top, width, height);
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
