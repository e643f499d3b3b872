#include <algorithm>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "regatta/app/report/html_text.h"
#include "regatta/app/report/internal/html_sections.h"
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

TableRow traffic_row(const LinkRow& row, double full, bool has_measured) {
  const double ratio = row.measured.value > 0 ? row.predicted / row.measured - 1 : 0;
  return {.cells = {escape_html(row.from) + " &rarr; " + escape_html(row.to),
                    format_bits_per_second(row.rate), format_bytes(row.predicted),
                    has_measured ? format_bytes(row.measured) : "",
                    has_measured && row.measured.value > 0 ? signed_percent(ratio) : "",
                    load_bars(row, full), fmt::format("{:.1f} %", 100 * row.predicted_share),
                    has_measured ? fmt::format("{:.1f} %", 100 * row.measured_share) : ""},
          .style = ""};
}

}  // namespace

std::string traffic_section(const RunResult& result) {
  std::vector<LinkRow> rows = link_rows(topo::build_graph(result.cluster), result.main);
  if (rows.empty()) return "";
  double most = 0;
  for (const LinkRow& row : rows)
    most = std::max({most, row.predicted_share, row.measured_share});
  const double full = std::min(1.0, nice_ticks(most, 1).back());
  const std::size_t all = rows.size();
  if (all > kRowsShown) {  // the busiest ones
    std::stable_sort(rows.begin(), rows.end(), [](const LinkRow& a, const LinkRow& b) {
      return std::max(a.predicted_share, a.measured_share) >
             std::max(b.predicted_share, b.measured_share);
    });
    rows.resize(kRowsShown);
  }
  const bool has_measured = !result.main.measured.traffic.empty();
  std::vector<TableRow> table;
  table.reserve(rows.size());
  for (const LinkRow& row : rows)
    table.push_back(traffic_row(row, full, has_measured));
  std::string body =
      "<div class=\"legend\"><span><i class=\"key recompute\"></i>predicted</span><span><i "
      "class=\"key backward\"></i>measured</span></div>\n";
  body += html_table({{"Link", false},
                      {"Rate", true},
                      {"Predicted", true},
                      {"Measured", true},
                      {"Difference", true},
                      {fmt::format("Load, bars to {:.0f} %", 100 * full), false},
                      {"Predicted", true},
                      {"Measured", true}},
                     table);
  std::string hint =
      "Bytes per step on each direction that carries anything; load is their share of what the "
      "link could carry in a step.";
  if (!has_measured) hint += " Traffic was not measured in this run.";
  if (all > kRowsShown) hint += fmt::format(" The {} busiest of {} are shown.", kRowsShown, all);
  return section("Traffic per link", hint, body);
}

}  // namespace regatta::report
