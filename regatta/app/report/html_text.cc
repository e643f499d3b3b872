#include "regatta/app/report/html_text.h"

#include <cmath>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "regatta/model/workload/strategy.h"

namespace regatta::report {

std::string escape_html(std::string_view text) {
  std::string escaped;
  escaped.reserve(text.size());
  for (const char c : text) {
    switch (c) {
      case '&':
        escaped += "&amp;";
        break;
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      case '"':
        escaped += "&quot;";
        break;
      case '\'':
        escaped += "&#39;";
        break;
      default:
        escaped += c;
    }
  }
  return escaped;
}

std::string html_table(const std::vector<Column>& columns, const std::vector<TableRow>& rows) {
  std::string html = "<div class=\"scroll\"><table><thead><tr>";
  for (const Column& column : columns)
    html += fmt::format("<th{}>{}</th>", column.is_number ? " class=\"n\"" : "",
                        escape_html(column.head));
  html += "</tr></thead><tbody>\n";
  for (const TableRow& row : rows) {
    html += row.style.empty() ? "<tr>" : fmt::format("<tr class=\"{}\">", row.style);
    for (std::size_t i = 0; i < row.cells.size() && i < columns.size(); ++i)
      html +=
          fmt::format("<td{}>{}</td>", columns[i].is_number ? " class=\"n\"" : "", row.cells[i]);
    html += "</tr>\n";
  }
  return html + "</tbody></table></div>\n";
}

std::string section(std::string_view heading, std::string_view hint, std::string_view body) {
  std::string html = fmt::format("<section>\n<h2>{}</h2>\n", escape_html(heading));
  if (!hint.empty()) html += fmt::format("<p class=\"hint\">{}</p>\n", escape_html(hint));
  return html.append(body) + "</section>\n";
}

std::string figure(std::string_view name, std::string_view value, std::string_view note,
                   std::string_view style) {
  return fmt::format(
      "<div class=\"figure\"><div class=\"name\">{}</div><div class=\"value {}\">{}</div>"
      "<div class=\"note\">{}</div></div>\n",
      name, style, value, note);
}

std::string count_text(long long count) {
  if (count >= 1'000'000'000)
    return fmt::format("{:.2f} billion", static_cast<double>(count) / 1e9);
  if (count >= 1'000'000) return fmt::format("{:.2f} million", static_cast<double>(count) / 1e6);
  return fmt::format("{}", count);
}

std::string sentence(std::string_view text) {
  return text.empty() ? "" : fmt::format("<p>{}</p>\n", escape_html(text));
}

std::string phase_legend(const workload::PhaseTimes& phases) {
  std::string html = "<div class=\"legend\">";
  for (std::size_t i = 0; i < workload::kPhaseCount; ++i) {
    const auto phase = static_cast<workload::Phase>(i);
    if (phases[phase].value <= 0) continue;
    html += fmt::format("<span><i class=\"key {0}\"></i>{0}</span>", workload::to_string(phase));
  }
  return html + "</div>\n";
}

std::string phase_bar(const workload::PhaseTimes& phases, Seconds full, std::string_view style) {
  std::string html = fmt::format("<div class=\"stack{}\">", style);
  const TimeFormat format(full);
  for (std::size_t i = 0; i < workload::kPhaseCount; ++i) {
    const auto phase = static_cast<workload::Phase>(i);
    if (phases[phase].value <= 0 || full.value <= 0) continue;
    html += fmt::format("<i class=\"{0}\" style=\"width:{1:.2f}%\" title=\"{0}: {2}\"></i>",
                        workload::to_string(phase), 100 * (phases[phase] / full),
                        format(phases[phase]));
  }
  return html + "</div>";
}

std::string strategy_html(const workload::Strategy& strategy) {
  std::string html =
      fmt::format("<span class=\"strategy\">tp{} pp{} dp{} <span class=\"soft\">mb{}", strategy.tp,
                  strategy.pp, strategy.dp, strategy.micro_batch);
  if (strategy.recompute != workload::Recompute::kNone)
    html += " recompute=" + escape_html(workload::to_string(strategy.recompute));
  if (!strategy.overlap && strategy.dp > 1) html += " no overlap";
  return html + "</span></span>";
}

std::vector<double> nice_ticks(double most, int count) {
  if (!(most > 0) || count < 1) return {0, 1};
  const double least = most / count;
  const double power = std::pow(10.0, std::floor(std::log10(least)));
  double step = 10 * power;
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= least * (1 - 1e-9)) {
      step = factor * power;
      break;
    }
  }
  const int last = static_cast<int>(std::ceil(most / step - 1e-9));
  std::vector<double> ticks;
  ticks.reserve(static_cast<std::size_t>(last) + 1);
  for (int i = 0; i <= last; ++i)
    ticks.push_back(i * step);
  return ticks;
}

}  // namespace regatta::report
