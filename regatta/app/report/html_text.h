// report/html_text.h: the small vocabulary that the sections of report.html are written with.
#pragma once

#include <string>
#include <string_view>
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

}  // namespace regatta::report
