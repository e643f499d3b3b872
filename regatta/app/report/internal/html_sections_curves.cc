#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "regatta/app/report/internal/html_sections.h"
#include "regatta/app/report/internal/html_text.h"

namespace regatta::report {
namespace {

using Points = Chart::Points;

// Steps count from 1 for people, as the progress of the run does.
double number_of(const StepRecord& step) {
  return step.step + 1;
}

Points losses(const MeasuredRun& measured) {
  Points points;
  for (const StepRecord& step : measured.steps)
    if (std::isfinite(step.loss)) points.emplace_back(number_of(step), step.loss);
  return points;
}

Points step_times(const MeasuredRun& measured) {
  Points points;
  for (const StepRecord& step : measured.steps)
    points.emplace_back(number_of(step), step.time.value);
  return points;
}

std::pair<double, double> range_of(const Points& points) {
  const auto [least, most] =
      std::minmax_element(points.begin(), points.end(),
                          [](const auto& a, const auto& b) { return a.second < b.second; });
  return {least->second, most->second};
}

std::string loss_chart(const Points& points) {
  const auto [least, most] = range_of(points);
  Chart chart({.title = "Loss",
               .x_label = "step",
               .x_most = points.back().first,
               .ends_at_x_most = true,
               .y_least = least,
               .y_most = most,
               .y_decimals = tick_decimals(most - least)});
  chart.line(points, "main");
  for (const auto& [step, loss] : points)
    chart.spot({step, loss}, fmt::format("step {:.0f}: loss {:.4f}", step, loss));
  return chart.html();
}

// The axis fits the steady steps. A step of the warm-up may be several times as long; its line
// leaves the chart at the top.
std::string time_chart(const RunResult& result, const Points& points) {
  const double predicted = result.main.plan.prediction.step_time.value;
  const int warm_up = result.main.measured.warm_up_steps;
  const bool has_steady = points.back().first > warm_up;
  double most = predicted;
  for (const auto& [step, time] : points)
    if (!has_steady || step > warm_up) most = std::max(most, time);
  const TimeFormat format({most});
  Chart chart({.title = fmt::format("Step time, {}", format.unit()),
               .x_label = "step; dashed: predicted; grey: warm-up",
               .x_most = points.back().first,
               .ends_at_x_most = true,
               .y_most = format.number({most}),
               .y_decimals = tick_decimals(format.number({most}))});
  if (warm_up > 0) chart.mark({{.to = warm_up + 0.5, .number = "", .style = "mark warm-up"}});
  const double guide = format.number({predicted});
  chart.line({{0, guide}, {chart.x_end(), guide}}, "guide");
  Points scaled = points;
  for (auto& [step, time] : scaled)
    time = std::min(format.number({time}), chart.y_end());
  chart.line(scaled, "main");
  for (std::size_t i = 0; i < points.size(); ++i)
    chart.spot(scaled[i],
               fmt::format("step {:.0f}: {}", points[i].first, format({points[i].second})));
  return chart.html();
}

struct SweepPoint {
  const PlanRun* run;
  double predicted;
  double measured;
};

// Measured over predicted; the diagonal is an exact prediction, the band is the stated error
// around it.
std::string sweep_chart(const std::vector<SweepPoint>& points, const TimeFormat& format) {
  double most = 0;
  for (const SweepPoint& point : points)
    most = std::max({most, format.number({point.predicted}), format.number({point.measured})});
  Chart chart({.title = fmt::format("Measured step, {}", format.unit()),
               .x_label = fmt::format("predicted step, {}", format.unit()),
               .x_most = most,
               .y_most = most,
               .x_decimals = tick_decimals(most),
               .y_decimals = tick_decimals(most),
               .height = 320});
  const double end = std::min(chart.x_end(), chart.y_end());
  chart.band(
      {{0, 0}, {end / (1 + kStatedError), end}, {end, end}, {end, end * (1 - kStatedError)}});
  chart.line({{0, 0}, {end, end}}, "guide");
  for (std::size_t i = 0; i < points.size(); ++i)
    chart.dot({format.number({points[i].predicted}), format.number({points[i].measured})},
              i == 0 ? "dot best" : "dot", workload::to_string(points[i].run->plan.strategy),
              std::to_string(i + 1));
  return chart.html();
}

std::string strategy_cell(const plan::SimulatedPlan& plan) {
  return strategy_html(plan.strategy) + "<div class=\"hint\" style=\"margin:0\">" +
         escape_html(plan.placement_name) + "</div>";
}

std::string sweep_table(const std::vector<SweepPoint>& points) {
  const TimeFormat format({points.back().measured});
  std::vector<TableRow> rows;
  for (std::size_t i = 0; i < points.size(); ++i) {
    const PlanRun& run = *points[i].run;
    const auto faster = std::count_if(points.begin(), points.end(), [&](const SweepPoint& other) {
      return other.measured < points[i].measured;
    });
    rows.push_back({.cells = {fmt::format("{}", i + 1), fmt::format("{}", faster + 1),
                              strategy_cell(run.plan), format(run.plan.prediction.step_time),
                              format(run.measured.step_time), deviation_html(run)},
                    .style = ""});
  }
  return html_table({{"#", false},
                     {"Measured #", true},
                     {"Plan", false},
                     {"Predicted", true},
                     {"Measured", true},
                     {"Against predicted", true}},
                    rows);
}

}  // namespace

std::string steps_section(const RunResult& result) {
  const Points loss = losses(result.main.measured);
  const Points times = step_times(result.main.measured);
  if (times.size() < 2) return "";
  std::string body = "<div class=\"pair\">";
  if (loss.size() >= 2) body += "<div>" + loss_chart(loss) + "</div>";
  body += "<div>" + time_chart(result, times) + "</div></div>\n";
  std::string hint;
  if (loss.size() >= 2)
    hint = fmt::format("Loss {:.4f} at step {:.0f}, {:.4f} at step {:.0f}. ", loss.front().second,
                       loss.front().first, loss.back().second, loss.back().first);
  if (const int warm_up = result.main.measured.warm_up_steps; warm_up > 0)
    hint += fmt::format("The median leaves out the {} steps of the warm-up.", warm_up);
  return section("Training", hint, body);
}

std::string sweep_section(const RunResult& result) {
  if (result.sweep.empty()) return "";
  std::vector<SweepPoint> points;
  double most = 0;
  for (const PlanRun& run : result.sweep) {
    points.push_back({&run, run.plan.prediction.step_time.value, run.measured.step_time.value});
    most = std::max({most, points.back().predicted, points.back().measured});
  }
  std::stable_sort(points.begin(), points.end(), [](const SweepPoint& a, const SweepPoint& b) {
    return a.predicted < b.predicted;
  });
  std::string body = "<div class=\"pair sweep\"><div>" + sweep_chart(points, TimeFormat({most})) +
                     "</div><div>" + sweep_table(points) + "</div></div>\n";
  std::string hint = fmt::format("{} plans, each trained.", result.sweep.size());
  if (const auto correlation = sweep_spearman(result))
    hint += fmt::format(" Spearman rank correlation of prediction and measurement: {:.3f}.",
                        *correlation);
  hint += fmt::format(
      " On the dashed line the prediction is exact; the band is the stated {:.0f} % around it.",
      100 * kStatedError);
  return section("Predicted and measured order", hint, body);
}

}  // namespace regatta::report
