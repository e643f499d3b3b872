#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "regatta/app/report/internal/html_text.h"
#include "regatta/app/report/internal/svg.h"

namespace regatta::report {
namespace {

constexpr double kPlotSide = 1000;  // of the stretched drawing

// `place`: left or top, with the share of the plot at which a tick is.
template <typename Share>
std::string tick_labels(std::string_view axis, std::string_view place,
                        const std::vector<double>& ticks, int decimals, Share&& share) {
  std::string html = fmt::format("<div class=\"ticks {}\">", axis);
  for (const double tick : ticks)
    html += fmt::format("<span style=\"{}:{:.2f}%\">{:.{}f}</span>", place, 100 * share(tick), tick,
                        decimals);
  // Absolute labels take no room; the longest one is there a second time, unseen.
  return html + fmt::format("<b>{:.{}f}</b></div>\n", ticks.back(), decimals);
}

}  // namespace

int tick_decimals(double most) {
  if (!(most > 0)) return 1;
  return std::clamp(static_cast<int>(std::ceil(1 - std::log10(most))), 0, 6);
}

std::string marks_html(const std::vector<ChartMark>& marks, double end) {
  std::string html;
  for (const ChartMark& mark : marks) {
    if (!(mark.from <= end)) continue;
    const double left = 100 * mark.from / end;
    const double width = 100 * std::min(mark.to, end) / end - left;
    html +=
        fmt::format("<i class=\"{}\" style=\"left:{:.2f}%;width:{:.2f}%\">{}</i>", mark.style, left,
                    width, mark.number.empty() ? "" : "<b>" + escape_html(mark.number) + "</b>");
  }
  return html;
}

Chart::Chart(ChartOptions options) : options_(std::move(options)) {
  x_ticks_ = nice_ticks(options_.x_most, 6);
  if (options_.ends_at_x_most) std::erase_if(x_ticks_, [&](double tick) { return tick > x_end(); });
  const double step = nice_ticks(options_.y_most - options_.y_least, 5)[1];
  const double first = step * std::floor(options_.y_least / step + 1e-9);
  const int count =
      std::max(1, static_cast<int>(std::ceil((options_.y_most - first) / step - 1e-9)));
  for (int i = 0; i <= count; ++i)
    y_ticks_.push_back(first + i * step);
}

double Chart::x_end() const {
  return options_.ends_at_x_most && options_.x_most > 0 ? options_.x_most : x_ticks_.back();
}

double Chart::x(double value) const {
  return kPlotSide * value / x_end();
}

double Chart::y(double value) const {
  return kPlotSide * (y_end() - value) / (y_end() - y_ticks_.front());
}

std::string Chart::path(const Points& points) const {
  std::string path;
  for (const auto& [at_x, at_y] : points)
    path +=
        fmt::format("{}{} {}", path.empty() ? "M" : "L", svg_number(x(at_x)), svg_number(y(at_y)));
  return path;
}

void Chart::line(const Points& points, std::string_view style) {
  if (points.size() >= 2) shapes_ += svg_path(fmt::format("line {}", style), path(points));
}

void Chart::band(const Points& corners) {
  shapes_ += svg_path("band", path(corners) + "Z");
}

void Chart::dot(std::pair<double, double> at, std::string_view style, std::string_view title,
                std::string_view name) {
  const double left = x(at.first) / 10;
  overlay_ += fmt::format("<i class=\"{}\" style=\"left:{:.2f}%;top:{:.2f}%\" title=\"{}\">", style,
                          left, y(at.second) / 10, escape_html(title));
  if (!name.empty())
    overlay_ += fmt::format("<b{}>{}</b>", left > 80 ? " class=\"left\"" : "", escape_html(name));
  overlay_ += "</i>\n";
}

std::string Chart::html() const {
  std::string grid;
  for (const double tick : y_ticks_)
    grid += svg_path(tick == y_ticks_.front() ? "axis" : "grid",
                     fmt::format("M0 {}H{}", svg_number(y(tick)), svg_number(kPlotSide)));
  return fmt::format("<figure class=\"chart\"><figcaption>{}</figcaption><div class=\"frame\">\n",
                     escape_html(options_.title)) +
         tick_labels("y", "top", y_ticks_, options_.y_decimals,
                     [&](double tick) { return y(tick) / kPlotSide; }) +
         fmt::format("<div class=\"plot\" style=\"height:{}px\">", options_.height) +
         svg_open("shapes", kPlotSide, kPlotSide, options_.title, "preserveAspectRatio=\"none\"") +
         grid + shapes_ + "</svg>\n" + overlay_ + "</div>\n" +
         tick_labels("x", "left", x_ticks_, options_.x_decimals,
                     [&](double tick) { return x(tick) / kPlotSide; }) +
         fmt::format("<div class=\"label\">{}</div></div></figure>\n",
                     escape_html(options_.x_label));
}

}  // namespace regatta::report
