#include "regatta/app/report/internal/stage_timeline_svg.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "regatta/app/report/internal/html_text.h"
#include "regatta/app/report/internal/stage_timeline_window.h"
#include "regatta/app/report/internal/svg.h"

namespace regatta::report {
namespace {

using plan::StageSpan;
using plan::StageWork;

constexpr double kRuler = 24;
constexpr double kLeastPiece = 0.35;  // pixels; shorter ones are not drawn
constexpr double kDigit = 6.1;
constexpr double kTickText = 58;  // pixels from a tick to the end of its text

std::string_view style_of(StageWork work) {
  switch (work) {
    case StageWork::kForward:
      return "forward";
    case StageWork::kBackward:
      return "backward";
    case StageWork::kInputGradient:
      return "input_gradient";
    case StageWork::kWeightGradient:
      return "weight_gradient";
    case StageWork::kReduction:
      return "dp_comm";
    case StageWork::kOptimizer:
      return "optimizer";
    case StageWork::kOffload:
      break;
  }
  return "offload";
}

// The vertical extent of a row, or of half of it.
struct Lane {
  double top = 0;
  double height = 0;
};

class TimelineDrawing {
 public:
  explicit TimelineDrawing(const plan::StageTimeline& timeline)
      : timeline_(timeline), windows_(timeline_windows(timeline)) {
    const std::size_t stages = timeline.rows.size();
    pitch_ = stages <= 16 ? 24 : stages <= 32 ? 18 : 13;
  }

  std::string svg() {
    for (std::size_t stage = 0; stage < timeline_.rows.size(); ++stage)
      add_row(stage);
    const double height = kRuler + pitch_ * static_cast<double>(timeline_.rows.size()) + 4;
    std::string svg = ground() + ruler(height);
    for (const auto& [style, rects] : rects_)
      svg += fmt::format("<g class=\"{}\">\n{}</g>\n", style, rects);
    svg += "<g class=\"number\">\n" + numbers_ + "</g>\n" + left_out(height);
    return stage_picture({.label = "what each pipeline stage does when",
                          .names = names(),
                          .shapes = svg,
                          .height = height},
                         windows_);
  }

 private:
  Lane lane(std::size_t stage) const {
    return {kRuler + pitch_ * static_cast<double>(stage), pitch_ - (pitch_ > 15 ? 4 : 2)};
  }

  void add_row(std::size_t stage) {
    const auto& row = timeline_.rows[stage];
    for (std::size_t i = 0; i < row.size(); ++i) {
      const StageSpan& span = row[i];
      Lane half = lane(stage);
      Seconds start = span.start;
      Seconds end = span.end;
      // Two that run at once share the height.
      if (span.overlaps_next && i + 1 < row.size()) {
        half.height /= 2;
        end = row[i + 1].end;
      } else if (i > 0 && row[i - 1].overlaps_next) {
        half.height /= 2;
        half.top += half.height;
        start = row[i - 1].start;
      }
      add_span(span, start, end, half);
    }
  }

  void add_span(const StageSpan& span, Seconds start, Seconds end, Lane at) {
    const Seconds received = std::min(start + span.message, end);
    const Seconds recomputed = std::min(received + span.recompute, end);
    rect("pp_comm", start, received, at);
    rect("recompute", received, recomputed, at);
    std::string style(style_of(span.work));
    if (span.part % 2 == 1) style = "other-part " + style;
    rect(style, recomputed, end, at);
    number(span, recomputed, end, at);
  }

  // As much of it as a window shows.
  void rect(const std::string& style, Seconds start, Seconds end, Lane at) {
    for (const TimelineWindow& window : windows_.shown) {
      const Seconds first = std::max(start, window.start);
      const Seconds last = std::min(end, window.end);
      const double width = (last - first).value * windows_.scale;
      if (width < kLeastPiece) continue;
      const double x = window.x + (first - window.start).value * windows_.scale;
      // A line of the ground between two pieces.
      rects_[style] += svg_rect("", {x, at.top, std::max(width - 0.5, kLeastPiece), at.height});
    }
  }

  void number(const StageSpan& span, Seconds start, Seconds end, Lane at) {
    const auto left = windows_.x(start);
    const auto right = windows_.x(end);
    if (span.micro_batch < 0 || !left || !right || at.height < 9) return;
    const std::string text = std::to_string(span.micro_batch);
    if (*right - *left < kDigit * static_cast<double>(text.size()) + 2) return;
    numbers_ += svg_text("", {(*left + *right) / 2, at.top + at.height / 2 + 3.5}, text);
  }

  std::string names() const {
    std::string svg;
    for (std::size_t stage = 0; stage < timeline_.rows.size(); ++stage)
      svg += svg_text("", {0, lane(stage).top + lane(stage).height / 2 + 4},
                      fmt::format("stage {}", stage));
    return svg;
  }

  std::string ground() const {
    std::string svg;
    for (std::size_t stage = 0; stage < timeline_.rows.size(); ++stage)
      for (const TimelineWindow& window : windows_.shown)
        svg += svg_rect("ground",
                        {window.x, lane(stage).top, windows_.width_of(window), lane(stage).height});
    return svg;
  }

  std::string ruler(double height) const {
    const TimeFormat format(timeline_.makespan);
    std::string svg;
    for (const Seconds tick : windows_.ticks) {
      const auto x = windows_.x(tick);
      svg += svg_line("tick", {*x, 4}, {*x, height});
      if (*x + kTickText < windows_.width) svg += svg_text("", {*x + 4, 14}, format(tick));
    }
    return svg;
  }

  // How much the gap between two windows stands for.
  std::string left_out(double height) const {
    if (windows_.shown.size() < 2) return "";
    const TimelineWindow& head = windows_.shown.front();
    const Seconds missing = windows_.shown.back().start - head.end;
    const double from = head.x + windows_.width_of(head);
    const double middle = (from + windows_.shown.back().x) / 2;
    const double y = (kRuler + height) / 2;
    const TimeFormat format(timeline_.makespan);
    return svg_text(
        "break", {0, 0}, format(missing) + " alike",
        fmt::format("transform=\"translate({:.1f} {:.1f}) rotate(-90)\"", middle + 4, y));
  }

  const plan::StageTimeline& timeline_;
  TimelineWindows windows_;
  double pitch_ = 24;
  std::map<std::string, std::string> rects_;  // by style
  std::string numbers_;
};

}  // namespace

std::string stage_picture(const StagePicture& picture, const TimelineWindows& windows) {
  const auto svg = [&](double width, std::string_view label, const std::string& shapes) {
    return svg_open("stages", width, picture.height, label,
                    fmt::format("width=\"{:.0f}\" height=\"{:.0f}\"", width, picture.height)) +
           shapes + "</svg>\n";
  };
  return "<div class=\"timeline fixed\">\n" + svg(kStageNames, "names of stages", picture.names) +
         fmt::format("<div class=\"pan\" tabindex=\"0\" data-open=\"{:.0f}\">\n",
                     windows.steady_x) +
         svg(windows.width, picture.label, picture.shapes) + "</div>\n</div>\n";
}

std::string stage_timeline_svg(const plan::StageTimeline& timeline) {
  return TimelineDrawing(timeline).svg();
}

std::vector<std::pair<std::string, std::string>> stage_timeline_legend(
    const plan::StageTimeline& timeline) {
  constexpr std::pair<StageWork, std::string_view> kNames[] = {
      {StageWork::kForward, "forward"},
      {StageWork::kBackward, "backward"},
      {StageWork::kInputGradient, "gradient of the input"},
      {StageWork::kWeightGradient, "gradient of the weights"},
      {StageWork::kReduction, "data-parallel exchange"},
      {StageWork::kOptimizer, "optimizer"},
      {StageWork::kOffload, "offload"}};
  std::map<StageWork, bool> has;
  bool has_message = false;
  bool has_recompute = false;
  for (const auto& row : timeline.rows) {
    for (const StageSpan& span : row) {
      has[span.work] = true;
      has_message = has_message || span.message > Seconds{};
      has_recompute = has_recompute || span.recompute > Seconds{};
    }
  }
  std::vector<std::pair<std::string, std::string>> entries;
  for (const auto& [work, name] : kNames)
    if (has[work]) entries.emplace_back(style_of(work), name);
  if (has_recompute) entries.emplace_back("recompute", "recomputation");
  if (has_message) entries.emplace_back("pp_comm", "message between stages");
  entries.emplace_back("free", "waiting");
  return entries;
}

}  // namespace regatta::report
