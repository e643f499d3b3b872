#include "regatta/app/report/internal/html_text.h"

#include <cmath>
#include <cstddef>
#include <numeric>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "regatta/app/report/internal/assets.h"
#include "regatta/base/core/ids.h"
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

std::size_t rows_above_one_percent(const std::vector<double>& amounts) {
  const double sum = std::accumulate(amounts.begin(), amounts.end(), 0.0);
  std::size_t shown = amounts.size();
  double rest = 0;
  while (shown > 1 && rest + amounts[shown - 1] < 0.01 * sum)
    rest += amounts[--shown];
  return amounts.size() - shown < 2 ? amounts.size() : shown;
}

std::string html_page(const PageFrame& frame, std::string_view body) {
  std::string html = fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<title>{0} on {1} - regatta</title>\n<style>\n{2}</style>\n</head>\n<body>\n<main>\n"
      "<header>\n<div class=\"brand\"><b>regatta</b> {3}</div>\n"
      "<h1>{0} <small>on {1}</small></h1>\n",
      escape_html(frame.title), escape_html(frame.place), page_css(), escape_html(frame.kind));
  for (const std::string& fact : frame.facts)
    html += sentence(fact);
  html.append("</header>\n").append(body) += "<footer>\n";
  for (const std::string& line : frame.origin)
    html += sentence(line);
  html.append("</footer>\n</main>\n<script>\n").append(page_js());
  return html + "</script>\n</body>\n</html>\n";
}

std::string section(std::string_view heading, std::string_view hint, std::string_view body) {
  std::string html = fmt::format("<section>\n<h2>{}</h2>\n", escape_html(heading));
  if (!hint.empty()) html += fmt::format("<p class=\"hint\">{}</p>\n", escape_html(hint));
  return html.append(body) + "</section>\n";
}

std::string tile(std::string_view name, std::string_view value, std::string_view note,
                 std::string_view style) {
  return fmt::format(
      "<div class=\"tile\"><div class=\"name\">{}</div><div class=\"value {}\">{}</div>"
      "<div class=\"note\">{}</div></div>\n",
      escape_html(name), style, value, note);
}

std::string tile_row(std::string_view tiles) {
  return fmt::format("<div class=\"tiles\">\n{}</div>\n", tiles);
}

std::string sentence(std::string_view text) {
  return text.empty() ? "" : fmt::format("<p>{}</p>\n", escape_html(text));
}

std::string color_key(std::string_view style, std::string_view name) {
  return fmt::format("<i class=\"key {}\"></i>{}", style, escape_html(name));
}

std::string legend(const std::vector<std::pair<std::string, std::string>>& styles_and_names) {
  std::string html = "<div class=\"legend\">";
  for (const auto& [style, name] : styles_and_names)
    html += "<span>" + color_key(style, name) + "</span>";
  return html + "</div>\n";
}

std::string phase_legend(const workload::PhaseTimes& phases) {
  std::vector<std::pair<std::string, std::string>> entries;
  for (std::size_t i = 0; i < workload::kPhaseCount; ++i) {
    const auto phase = static_cast<workload::Phase>(i);
    const std::string name(workload::to_string(phase));
    if (phases[phase].value > 0) entries.emplace_back(name, name);
  }
  return legend(entries);
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

namespace {

// The facts that set the layers of a model apart from each other, and what of it is trained.
std::string layer_facts(const workload::ModelShape& model) {
  std::string text;
  const workload::AttentionWindow& window = model.window;
  if (window.tokens > 0)
    text += fmt::format(
        "; queries see {} tokens{}", window.tokens,
        window.full_every == 0 ? "" : fmt::format(", all in one of {} layers", window.full_every));
  if (!model.layer_pattern.empty()) text += "; layers " + escape_html(model.layer_pattern);
  if (model.mtp_layers > 0)
    text += fmt::format("; {} modules predict further tokens", model.mtp_layers);
  if (model.packed > 0) text += fmt::format("; samples of {} tokens are packed", model.packed);
  if (is_frozen(model))
    text += fmt::format("; LoRA of rank {} trains {} of the parameters", model.adapters.rank,
                        count_text(workload::trained_parameters(model)));
  return text;
}

}  // namespace

std::string model_facts(const workload::ModelShape& model, workload::Precision precision,
                        int global_batch) {
  return fmt::format(
      "{}{} layers, hidden {}, {} heads, sequence {}, vocabulary {}: {} parameters, {}; {} samples "
      "({} tokens) per step{}",
      model.preset.empty() ? "" : model.preset + ": ", model.layers, model.hidden, model.heads,
      model.seq, model.vocab, count_text(workload::total_parameters(model)),
      workload::to_string(precision), global_batch,
      count_text(static_cast<long long>(global_batch) * model.seq), layer_facts(model));
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
  ticks.reserve(as_index(last) + 1);
  for (int i = 0; i <= last; ++i)
    ticks.push_back(i * step);
  return ticks;
}

}  // namespace regatta::report
