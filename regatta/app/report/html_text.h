// report/html_text.h: the small vocabulary that the sections of report.html are written with.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "regatta/app/report/internal/number_text.h"
#include "regatta/base/core/units.h"
#include "regatta/model/workload/strategy.h"
#include "regatta/model/workload/timeline.h"

namespace regatta::report {

// Text for element content and for quoted attributes.
std::string escape_html(std::string_view text);

// A column of a table: numbers align to the right.
struct Column {
  std::string head;  // text
  bool is_number = false;
};

// A row of cells that are HTML already; `style` is the row's class, may be empty.
struct TableRow {
  std::vector<std::string> cells;
  std::string style;
};

std::string html_table(const std::vector<Column>& columns, const std::vector<TableRow>& rows);

// A card of the page: heading and hint are text, the body is HTML.
std::string section(std::string_view heading, std::string_view hint, std::string_view body);

// A card with one figure; all of it is text but `value` and `note`, which are HTML.
std::string figure(std::string_view name, std::string_view value, std::string_view note,
                   std::string_view style = "");

std::string count_text(long long count);      // "1.75 billion", "812"
std::string sentence(std::string_view text);  // a paragraph of text; nothing for none

// Coloured squares with the names of the phases that take any time in `phases`.
std::string phase_legend(const workload::PhaseTimes& phases);

// One bar cut into the phases, `full` seconds wide at 100 %.
std::string phase_bar(const workload::PhaseTimes& phases, Seconds full, std::string_view style);

// "tp2 pp4 dp1 mb4", and what differs from the defaults.
std::string strategy_html(const workload::Strategy& strategy);

// Ticks 0, step, 2 step ... up to at least `most` in steps of 1, 2 or 5 times a power of ten, at
// most `count` + 1 of them.
std::vector<double> nice_ticks(double most, int count);

// The frame of a small x-y chart: axes, ticks, grid; from data to pixels.

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

// The style and the script of report.html and of the pictures of a fabric and of
// a GPU plan, embedded when the program is built.

std::string_view report_css();
std::string_view report_js();
std::string_view fabric_css();
std::string_view gpu_plan_css();  // besides report_css()

}  // namespace regatta::report
