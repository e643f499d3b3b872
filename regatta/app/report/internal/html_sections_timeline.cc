#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <map>
#include <string>

#include <fmt/format.h>

#include "regatta/app/report/internal/html_sections.h"
#include "regatta/app/report/internal/html_text.h"
#include "regatta/app/report/internal/svg.h"
#include "regatta/model/topo/cluster.h"

namespace regatta::report {
namespace {

using workload::Span;
using workload::Timeline;

constexpr std::size_t kRanksShown = 64;
// One rank from top to bottom, in pixels: predicted, measured, and under each its background row.
constexpr int kRow = 15;
constexpr int kBackgroundRow = 5;
constexpr int kBarGap = 9;
constexpr double kViewWidth = 100000;  // the drawing is stretched to the page's width
constexpr double kLeastSpan = 40;      // of that: a shorter span is drawn so wide, to be seen

struct Extent {
  Seconds first{std::numeric_limits<double>::infinity()};
  Seconds last{-std::numeric_limits<double>::infinity()};
  Seconds length() const { return last - first; }
};

void grow(Extent& extent, const Span& span) {
  extent.first = std::min(extent.first, span.start);
  extent.last = std::max(extent.last, span.start + span.duration);
}

// The traced step nearest to the median step time, moved to start at 0; one of the warm-up only
// where no other was traced.
Timeline typical_step(const MeasuredRun& measured) {
  const Timeline& timeline = measured.timeline;
  const Seconds step_time = measured.step_time;
  std::map<int, Extent> extents;
  for (const Span& span : timeline)
    if (!span.background) grow(extents[span.step], span);
  if (extents.empty()) return {};
  if (extents.rbegin()->first >= measured.warm_up_steps)
    extents.erase(extents.begin(), extents.lower_bound(measured.warm_up_steps));
  const auto distance = [&](const Extent& extent) {
    return std::abs((extent.length() - step_time).value);
  };
  const auto chosen = std::min_element(
      extents.begin(), extents.end(),
      [&](const auto& a, const auto& b) { return distance(a.second) < distance(b.second); });
  Timeline step;
  for (Span span : timeline) {
    if (span.step != chosen->first) continue;
    span.start -= chosen->second.first;
    step.push_back(span);
  }
  return step;
}

struct Drawing {
  Seconds total;
  bool has_background = false;
  std::size_t ranks = 0;

  int lane_height() const { return 2 * (kRow + (has_background ? kBackgroundRow : 0)) + kBarGap; }
  double x(Seconds time) const { return kViewWidth * (time / total); }
};

std::string span_title(const Span& span, const TimeFormat& format) {
  std::string text(workload::to_string(span.phase));
  if (span.background) text += " (background)";
  if (span.micro_batch >= 0) text += fmt::format(", micro-batch {}", span.micro_batch);
  if (span.layer >= 0) text += fmt::format(", layer {}", span.layer);
  return text + fmt::format(": {} at {}", format(span.duration), format(span.start));
}

std::string span_rects(const Timeline& timeline, const Drawing& drawing, int row_offset) {
  const TimeFormat format(drawing.total);
  std::string svg;
  for (const Span& span : timeline) {
    if (!span.rank.is_valid() || span.rank.index() >= drawing.ranks) continue;
    if (span.duration.value <= 0) continue;
    const int top =
        span.rank.value * drawing.lane_height() + row_offset + (span.background ? kRow : 0);
    const double left = std::clamp(drawing.x(span.start), 0.0, kViewWidth - kLeastSpan);
    const double right = std::clamp(drawing.x(span.start + span.duration), 0.0, kViewWidth);
    const double height = (span.background ? kBackgroundRow : kRow) - 1;
    svg +=
        svg_rect(workload::to_string(span.phase),
                 {left, static_cast<double>(top), std::max(right - left, kLeastSpan), height},
                 {.title = fmt::format("rank {} {}", span.rank.value, span_title(span, format))});
  }
  return svg;
}

std::string lane_labels(const RunResult& result, const Drawing& drawing) {
  std::string html = "<div class=\"lanes\"><div style=\"height:22px\"></div>\n";
  const plan::Placement& placement = result.main.plan.placement;
  const int half = (drawing.lane_height() - kBarGap) / 2;
  for (std::size_t rank = 0; rank < drawing.ranks; ++rank)
    html += fmt::format(
        "<div class=\"lane\" style=\"height:{}px\"><div><b>rank {}</b></div><span "
        "style=\"height:{}px\">predicted</span><div class=\"soft\">{}</div><span>measured</span>"
        "</div>\n",
        drawing.lane_height(), rank, half,
        rank < placement.size() ? escape_html(topo::to_string(result.cluster, placement[rank]))
                                : "");
  return html + "</div>\n";
}

// A ruler for a reader without scripts; the script draws a finer one.
std::string ruler(const Drawing& drawing) {
  const TimeFormat format(drawing.total);
  std::string html = "<div class=\"ruler\">";
  for (const double tick : nice_ticks(drawing.total.value, 10))
    if (tick < 0.95 * drawing.total.value)  // room for its text
      html += fmt::format("<span style=\"left:{:.2f}%\">{}</span>",
                          100 * tick / drawing.total.value, format({tick}));
  return html + "</div>\n";
}

std::string sheet(const Timeline& predicted, const Timeline& measured, const Drawing& drawing) {
  const int height = static_cast<int>(drawing.ranks) * drawing.lane_height();
  const int half = (drawing.lane_height() - kBarGap) / 2;
  std::string svg =
      svg_open("spans", kViewWidth, height, "timeline of every rank",
               fmt::format("preserveAspectRatio=\"none\" style=\"height:{}px\"", height));
  for (std::size_t rank = 0; rank < drawing.ranks; ++rank)
    for (const int offset : {0, half})
      svg += svg_rect(
          "row", {0, static_cast<double>(static_cast<int>(rank) * drawing.lane_height() + offset),
                  kViewWidth, half - 1.0});
  svg += span_rects(predicted, drawing, 0);
  svg += span_rects(measured, drawing, half);
  return svg + "</svg>\n";
}

Drawing drawing_of(const RunResult& result, const Timeline& predicted, const Timeline& measured) {
  Drawing drawing;
  drawing.ranks = std::min(kRanksShown, result.main.plan.placement.size());
  Extent extent;
  for (const Timeline* timeline : {&predicted, &measured}) {
    for (const Span& span : *timeline) {
      drawing.has_background = drawing.has_background || span.background;
      if (!span.background) grow(extent, span);
    }
  }
  drawing.total = {std::max(extent.last.value, 1e-9)};
  return drawing;
}

}  // namespace

std::string timeline_section(const RunResult& result) {
  const Timeline& predicted = result.main.plan.prediction.timeline;
  const Timeline measured = typical_step(result.main.measured);
  if (predicted.empty() && measured.empty()) return "";
  const Drawing drawing = drawing_of(result, predicted, measured);
  workload::PhaseTimes used;
  for (const Timeline* timeline : {&predicted, &measured})
    for (const Span& span : *timeline)
      used[span.phase] += span.duration;
  std::string body = phase_legend(used);
  body +=
      "<div class=\"tools\"><button type=\"button\" data-zoom=\"0.5\" aria-label=\"zoom out\">-"
      "</button><button type=\"button\" data-zoom=\"fit\">fit</button><button type=\"button\" "
      "data-zoom=\"2\" aria-label=\"zoom in\">+</button><span>or Ctrl and the wheel; point at a "
      "span for its figures</span></div>\n";
  body += fmt::format("<div class=\"timeline\" data-seconds=\"{:.6f}\">\n", drawing.total.value);
  body += lane_labels(result, drawing);
  body += "<div class=\"pan\" tabindex=\"0\"><div class=\"zoom\">\n" + ruler(drawing) +
          sheet(predicted, measured, drawing) + "</div></div>\n</div>\n";
  std::string hint = "Every rank, predicted above measured";
  if (!measured.empty())
    hint +=
        fmt::format(" (step {}, the traced one nearest to the median)", measured.front().step + 1);
  if (drawing.has_background)
    hint += "; the thin row below each is communication in the background";
  if (result.main.plan.placement.size() > kRanksShown)
    hint += fmt::format("; the first {} ranks are shown, all are in trace.json", kRanksShown);
  return section("One step, rank by rank", hint + ".", body);
}

}  // namespace regatta::report
