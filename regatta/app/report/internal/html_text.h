// report/internal/html_text.h: the frame that all pages share, and the elements of their sections.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "regatta/app/report/internal/number_text.h"
#include "regatta/base/core/units.h"
#include "regatta/model/workload/model.h"
#include "regatta/model/workload/strategy.h"
#include "regatta/model/workload/timeline.h"

namespace regatta::report {

// Text for element content and for quoted attributes.
std::string escape_html(std::string_view text);

// The heading and the foot of a page; all of it is text.
struct PageFrame {
  std::string_view kind;            // "training run"
  std::string title;                // "gpt-small"
  std::string place;                // "lab-4x2"
  std::vector<std::string> facts;   // paragraphs below the heading
  std::vector<std::string> origin;  // paragraphs at the foot: where the figures come from
};

// A whole page that requests nothing from outside and is readable without its script. `body` is
// HTML: tiles and sections.
std::string html_page(const PageFrame& frame, std::string_view body);

// A card of the page: heading and hint are text, the body is HTML.
std::string section(std::string_view heading, std::string_view hint, std::string_view body);

// A small card with one figure. `name` is text, `value` and `note` are HTML; `style` colours the
// value: "good", "bad" or nothing.
std::string tile(std::string_view name, std::string_view value, std::string_view note,
                 std::string_view style = "");
std::string tile_row(std::string_view tiles);

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

// How many of `amounts`, largest first, a table shows: the others are together below 1 % of the
// sum, and at least two, so that one row for them saves some.
std::size_t rows_above_one_percent(const std::vector<double>& amounts);

std::string sentence(std::string_view text);  // a paragraph of text; nothing for none

// A coloured square with its name beside it.
std::string color_key(std::string_view style, std::string_view name);
std::string legend(const std::vector<std::pair<std::string, std::string>>& styles_and_names);

// The phases that take any time in `phases`.
std::string phase_legend(const workload::PhaseTimes& phases);

// One bar cut into the phases, `full` seconds wide at 100 %.
std::string phase_bar(const workload::PhaseTimes& phases, Seconds full, std::string_view style);

// Size of the model and of a step, as one line of text.
std::string model_facts(const workload::ModelShape& model, workload::Precision precision,
                        int global_batch);

// "tp2 pp4 dp1 mb4", and what differs from the defaults.
std::string strategy_html(const workload::Strategy& strategy);

// Ticks 0, step, 2 step ... up to at least `most` in steps of 1, 2 or 5 times a power of ten, at
// most `count` + 1 of them.
std::vector<double> nice_ticks(double most, int count);

// Digits after the point that distinguish ticks up to `most`.
int tick_decimals(double most);

// A moment or a stretch of time at which something happened, marked on every chart of a page by its
// number.
struct ChartMark {
  double from = 0;     // on the x axis
  double to = 0;       // not before `from`; infinity: to the end of the chart
  std::string number;  // "1"; empty: no badge
  std::string style = "mark";
};
// Marks over a plot that is `end` wide.
std::string marks_html(const std::vector<ChartMark>& marks, double end);

struct ChartOptions {
  std::string title;
  std::string x_label;
  double x_most = 1;  // the axes run from 0 (y from y_least) to the next tick at or above these
  bool ends_at_x_most = false;  // the x axis ends there, not at a tick: time
  double y_least = 0;
  double y_most = 1;
  int x_decimals = 0;
  int y_decimals = 1;
  int height = 200;  // pixels of the plot
};

// An x-y chart as wide as its place on the page: shapes stretch, text and dots keep their size.
class Chart {
 public:
  explicit Chart(ChartOptions options);

  double x_end() const;  // of the axes, in data
  double y_end() const { return y_ticks_.back(); }

  using Points = std::vector<std::pair<double, double>>;
  // A line through the points; nothing below two points.
  void line(const Points& points, std::string_view style);
  void band(const Points& corners);
  // A dot that shows `title` when pointed at, with `name` beside it.
  void dot(std::pair<double, double> at, std::string_view style, std::string_view title,
           std::string_view name = "");
  // An invisible dot.
  void spot(std::pair<double, double> at, std::string_view title) { dot(at, "spot", title); }
  void mark(const std::vector<ChartMark>& marks) { overlay_ += marks_html(marks, x_end()); }

  std::string html() const;

 private:
  // From data to thousandths of the plot.
  double x(double value) const;
  double y(double value) const;
  std::string path(const Points& points) const;

  ChartOptions options_;
  std::vector<double> x_ticks_;
  std::vector<double> y_ticks_;
  std::string shapes_;   // SVG
  std::string overlay_;  // HTML
};

}  // namespace regatta::report
