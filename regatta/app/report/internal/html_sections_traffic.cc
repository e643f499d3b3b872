#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "regatta/app/report/internal/html_sections.h"
#include "regatta/app/report/internal/html_text.h"
#include "regatta/app/report/internal/link_rows.h"
#include "regatta/base/core/units.h"
#include "regatta/model/topo/graph.h"

namespace regatta::report {
namespace {

constexpr std::size_t kRowsShown = 48;

std::string load_bars(const LinkRow& row, double full) {
  return fmt::format(
      "<div class=\"load\"><i class=\"predicted\" style=\"width:{:.1f}%\"></i><i "
      "class=\"measured\" style=\"width:{:.1f}%\"></i></div>",
      100 * std::min(1.0, row.predicted_share / full),
      100 * std::min(1.0, row.measured_share / full));
}

double amount_of(const LinkRow& row) {
  return static_cast<double>(std::max(row.predicted, row.measured).value);
}

struct TrafficTable {
  double full = 1;  // load of a whole bar
  bool has_measured = false;
  ColumnFormat bytes;
  ColumnFormat rate;
};

TableRow traffic_row(const LinkRow& row, const TrafficTable& table) {
  const bool has_both = row.measured.value > 0 && row.predicted.value > 0;
  return {.cells = {escape_html(row.from) + " &rarr; " + escape_html(row.to), table.rate(row.rate),
                    table.bytes(row.predicted), table.has_measured ? table.bytes(row.measured) : "",
                    has_both ? signed_percent(static_cast<double>(row.measured.value) /
                                                  static_cast<double>(row.predicted.value) -
                                              1)
                             : "",
                    load_bars(row, table.full), format_percent(row.predicted_share),
                    table.has_measured ? format_percent(row.measured_share) : ""},
          .style = ""};
}

// Connections that only control a run carry next to nothing: one row for all such links.
TableRow folded_row(const std::vector<LinkRow>& rows, std::size_t shown,
                    const TrafficTable& table) {
  LinkRow sum;
  for (std::size_t i = shown; i < rows.size(); ++i) {
    sum.predicted += rows[i].predicted;
    sum.measured += rows[i].measured;
  }
  return {.cells = {fmt::format("{} others, below 1 % of the traffic", rows.size() - shown), "",
                    table.bytes(sum.predicted), table.has_measured ? table.bytes(sum.measured) : "",
                    "", "", "", ""},
          .style = "folded"};
}

}  // namespace

std::string traffic_section(const RunResult& result) {
  std::vector<LinkRow> rows = link_rows(topo::build_graph(result.cluster), result.main);
  if (rows.empty()) return "";
  std::ranges::stable_sort(rows, std::ranges::greater{}, amount_of);
  std::vector<double> amounts;
  double most = 0;
  BytesPerSecond fastest;
  for (const LinkRow& row : rows) {
    amounts.push_back(amount_of(row));
    most = std::max({most, row.predicted_share, row.measured_share});
    fastest = std::max(fastest, row.rate);
  }
  const TrafficTable table{.full = std::min(1.0, nice_ticks(most, 1).back()),
                           .has_measured = !result.main.measured.traffic.empty(),
                           .bytes = ColumnFormat::bytes(amounts.front()),
                           .rate = ColumnFormat::bits_per_second(fastest)};
  const std::size_t all = rows.size();
  const std::size_t above = rows_above_one_percent(amounts);
  const std::size_t shown = std::min(above, kRowsShown);
  std::vector<TableRow> cells;
  cells.reserve(shown + 1);
  for (std::size_t i = 0; i < shown; ++i)
    cells.push_back(traffic_row(rows[i], table));
  if (shown == above && above < all) cells.push_back(folded_row(rows, shown, table));
  const std::string body =
      legend({{"predicted", "predicted"}, {"measured", "measured"}}) +
      html_table({{"Link", false},
                  {"Rate", true},
                  {"Predicted", true},
                  {"Measured", true},
                  {"Against predicted", true},
                  {fmt::format("Load, bars to {:.0f} %", 100 * table.full), false},
                  {"Predicted", true},
                  {"Measured", true}},
                 cells);
  std::string hint =
      "Bytes per step on each direction of a link, most first; load is their share of what the "
      "link "
      "could carry in a step.";
  if (!table.has_measured) hint += " Traffic was not measured in this run.";
  if (shown < above) hint += fmt::format(" The {} of {} that carry most are shown.", shown, all);
  return section("Traffic per link", hint, body);
}

}  // namespace regatta::report
