// report/html_chart.h: the frame of a small x-y chart: axes, ticks, grid; from data to pixels.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace regatta::report {

struct ChartOptions {
  std::string_view title;
  std::string_view x_label;
  double x_most = 1;  // the axes run from 0 (y from y_least) to the next tick at or above these
  double y_least = 0;
  double y_most = 1;
  int x_decimals = 0;
  int y_decimals = 1;
  int width = 520;
  int height = 260;
};

class Chart {
 public:
  explicit Chart(ChartOptions options);

  double x(double value) const;
  double y(double value) const;
  double x_end() const { return x_end_; }  // last tick, in data
  double y_end() const { return y_end_; }

  void add(std::string_view svg) { body_ += svg; }
  // A line through the points; nothing below two points.
  void line(const std::vector<std::pair<double, double>>& points, std::string_view style);
  // An invisible circle that shows `title` when pointed at.
  void spot(double at_x, double at_y, std::string_view title);

  // The finished <svg>.
  std::string svg() const;

 private:
  std::string grid() const;

  ChartOptions options_;
  double x_end_ = 1;
  double y_start_ = 0;
  double y_end_ = 1;
  std::vector<double> x_ticks_;
  std::vector<double> y_ticks_;
  std::string body_;
};

}  // namespace regatta::report
