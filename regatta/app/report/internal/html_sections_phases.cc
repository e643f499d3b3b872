#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "regatta/app/report/internal/html_sections.h"
#include "regatta/app/report/internal/html_text.h"

namespace regatta::report {
namespace {

using workload::Phase;
using workload::PhaseTimes;

struct Bar {
  std::string label;
  PhaseTimes phases;
  Seconds step_time;
};

std::string bar_rows(std::string_view heading, const std::vector<Bar>& bars, Seconds full) {
  const TimeFormat format(full);
  std::string html;
  if (!heading.empty()) html += fmt::format("<div class=\"of\">{}</div>\n", heading);
  for (const Bar& bar : bars)
    html +=
        fmt::format("<div class=\"soft\">{}</div><div class=\"track\">{}</div><div>{}</div>\n",
                    escape_html(bar.label), phase_bar(bar.phases, full, ""), format(bar.step_time));
  return html;
}

std::vector<Bar> bars_of(const PlanRun& run) {
  return {{"predicted", run.plan.prediction.phases, run.plan.prediction.step_time},
          {"measured", run.measured.phases, run.measured.step_time}};
}

Seconds longest(const std::vector<Bar>& bars) {
  Seconds most;
  for (const Bar& bar : bars)
    most = std::max({most, bar.step_time, bar.phases.total()});
  return most;
}

// Predicted, measured, difference and share of the measured step, one row a phase.
std::string phase_table(const PlanRun& run) {
  const PhaseTimes& predicted = run.plan.prediction.phases;
  const PhaseTimes& measured = run.measured.phases;
  const TimeFormat format(run.measured.step_time);
  std::vector<TableRow> rows;
  for (std::size_t i = 0; i < workload::kPhaseCount; ++i) {
    const auto phase = static_cast<Phase>(i);
    if (predicted[phase].value <= 0 && measured[phase].value <= 0) continue;
    const double share =
        run.measured.step_time.value > 0 ? measured[phase] / run.measured.step_time : 0;
    rows.push_back(
        {.cells = {color_key(workload::to_string(phase), workload::to_string(phase)),
                   format(predicted[phase]), format(measured[phase]),
                   format.difference(measured[phase] - predicted[phase]), format_percent(share)},
         .style = ""});
  }
  const Seconds predicted_step = run.plan.prediction.step_time;
  rows.push_back(
      {.cells = {"step", format(predicted_step), format(run.measured.step_time),
                 fmt::format("{} ({})", format.difference(run.measured.step_time - predicted_step),
                             deviation_html(run)),
                 format_percent(1)},
       .style = "total"});
  return "<div class=\"narrow\">" +
         html_table({{"Phase", false},
                     {"Predicted", true},
                     {"Measured", true},
                     {"Measured - predicted", true},
                     {"Share of measured step", true}},
                    rows) +
         "</div>\n";
}

PhaseTimes any_of(const std::vector<Bar>& bars) {
  PhaseTimes sum;
  for (const Bar& bar : bars)
    for (std::size_t i = 0; i < workload::kPhaseCount; ++i)
      sum[static_cast<Phase>(i)] += bar.phases[static_cast<Phase>(i)];
  return sum;
}

// One plan with both of its figures: a row of the comparison.
TableRow comparison_row(std::string_view name, const PlanRun& run, Seconds scale) {
  const TimeFormat format(scale);
  return {.cells = {escape_html(name), strategy_html(run.plan.strategy),
                    escape_html(run.plan.placement_name), format(run.plan.prediction.step_time),
                    format(run.measured.step_time), deviation_html(run),
                    fmt::format("{:.0f}", run.measured.tokens_per_s)},
          .style = ""};
}

std::string comparison_html(const RunResult& result) {
  const Seconds scale = result.compare->measured.step_time;
  std::string html = "<h3>The two plans</h3>\n";
  html += html_table({{"Plan", false},
                      {"Strategy", false},
                      {"Placement", false},
                      {"Predicted", true},
                      {"Measured", true},
                      {"Against predicted", true},
                      {"Tokens/s", true}},
                     {comparison_row("chosen", result.main, scale),
                      comparison_row("pure data parallelism", *result.compare, scale)});
  return html;
}

}  // namespace

std::string phases_section(const RunResult& result) {
  std::vector<Bar> all = bars_of(result.main);
  if (result.compare) {
    const std::vector<Bar> more = bars_of(*result.compare);
    all.insert(all.end(), more.begin(), more.end());
  }
  const Seconds full = longest(all);
  std::string body = phase_legend(any_of(all)) + "<div class=\"bars\">\n";
  const std::string chosen = "Chosen plan: " + strategy_html(result.main.plan.strategy);
  body += bar_rows(result.compare ? chosen : "", bars_of(result.main), full);
  if (result.compare)
    body += bar_rows("Pure data parallelism: " + strategy_html(result.compare->plan.strategy),
                     bars_of(*result.compare), full);
  body += "</div>\n";
  if (result.compare) body += comparison_html(result) + "<h3>Phases of the chosen plan</h3>\n";
  body += phase_table(result.main);
  return section("Where a step goes",
                 "Mean over ranks. Communication counts where compute waits for it; bubble is "
                 "waiting for a pipeline peer that has not yet sent.",
                 body);
}

}  // namespace regatta::report
