#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "regatta/app/report/html_text.h"

namespace regatta::report {
namespace {

constexpr double kChartLeft = 46;
constexpr double kRight = 14;
constexpr double kChartTop = 28;
constexpr double kBottom = 38;

}  // namespace

Chart::Chart(ChartOptions options) : options_(options) {
  x_ticks_ = nice_ticks(options.x_most, 6);
  x_end_ = x_ticks_.back();
  const std::vector<double> steps = nice_ticks(options.y_most - options.y_least, 5);
  const double step = steps[1];
  y_start_ = step * std::floor(options.y_least / step + 1e-9);
  for (double tick = y_start_; tick < options.y_most + step * (1 - 1e-9); tick += step)
    y_ticks_.push_back(tick);
  y_end_ = std::max(y_ticks_.back(), y_start_ + step);
}

double Chart::x(double value) const {
  return kChartLeft + (options_.width - kChartLeft - kRight) * value / x_end_;
}

double Chart::y(double value) const {
  const double height = options_.height - kChartTop - kBottom;
  return options_.height - kBottom - height * (value - y_start_) / (y_end_ - y_start_);
}

void Chart::line(const std::vector<std::pair<double, double>>& points, std::string_view style) {
  if (points.size() < 2) return;
  body_ += fmt::format("<polyline class=\"line {}\" points=\"", style);
  for (const auto& [at_x, at_y] : points)
    body_ += fmt::format("{:.1f},{:.1f} ", x(at_x), y(at_y));
  body_ += "\"/>\n";
}

void Chart::spot(double at_x, double at_y, std::string_view title) {
  body_ += fmt::format(
      "<circle class=\"spot\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"4\"><title>{}</title></circle>\n",
      x(at_x), y(at_y), escape_html(title));
}

std::string Chart::grid() const {
  std::string svg;
  const double bottom = y(y_start_);
  for (const double tick : y_ticks_)
    svg += fmt::format(
        "<line class=\"{}\" x1=\"{:.0f}\" x2=\"{:.1f}\" y1=\"{:.1f}\" y2=\"{:.1f}\"/><text "
        "x=\"{:.0f}\" y=\"{:.1f}\" text-anchor=\"end\">{:.{}f}</text>\n",
        tick == y_start_ ? "axis" : "grid", kChartLeft, x(x_end_), y(tick), y(tick), kChartLeft - 8,
        y(tick) + 4, tick, options_.y_decimals);
  for (const double tick : x_ticks_)
    svg += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\">{:.{}f}</text>\n",
                       x(tick), bottom + 17, tick, options_.x_decimals);
  svg += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"end\">{}</text>\n", x(x_end_),
                     bottom + 33, escape_html(options_.x_label));
  svg += fmt::format("<text class=\"title\" x=\"0\" y=\"13\">{}</text>\n",
                     escape_html(options_.title));
  return svg;
}

std::string Chart::svg() const {
  return fmt::format("<svg class=\"chart\" viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"{}\">\n",
                     options_.width, options_.height, escape_html(options_.title)) +
         grid() + body_ + "</svg>\n";
}

}  // namespace regatta::report
