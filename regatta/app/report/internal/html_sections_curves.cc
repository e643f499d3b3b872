#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "regatta/app/report/html_text.h"
#include "regatta/app/report/internal/html_sections.h"

namespace regatta::report {
namespace {

using Points = std::vector<std::pair<double, double>>;

// Digits after the point that tell ticks of this range apart.
int decimals_for(double range) {
  if (!(range > 0)) return 1;
  return std::clamp(static_cast<int>(std::ceil(1 - std::log10(range))), 0, 6);
}

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
               .y_least = least,
               .y_most = most,
               .y_decimals = decimals_for(most - least)});
  chart.line(points, "");
  for (const auto& [step, loss] : points)
    chart.spot(step, loss, fmt::format("step {:.0f}: loss {:.4f}", step, loss));
  return chart.svg();
}

std::string time_chart(const RunResult& result, const Points& points) {
  const double predicted = result.main.plan.prediction.step_time.value;
  const double most = std::max(range_of(points).second, predicted);
  const TimeFormat format({most});
  const std::string title = fmt::format("Step time, {}", format.unit());
  Chart chart({.title = title,
               .x_label = "step; dashed: predicted",
               .x_most = points.back().first,
               .y_most = format.number({most}),
               .y_decimals = decimals_for(format.number({most}))});
  Points scaled = points;
  for (auto& [step, time] : scaled)
    time = format.number({time});
  const double guide = format.number({predicted});
  chart.line({{0, guide}, {chart.x_end(), guide}}, "guide");
  chart.line(scaled, "");
  for (const auto& [step, time] : points)
    chart.spot(step, format.number({time}), fmt::format("step {:.0f}: {}", step, format({time})));
  return chart.svg();
}

struct SweepPoint {
  const PlanRun* run;
  double predicted;
  double measured;
};

// Predicted against measured; the diagonal is a perfect prediction, the band is kGoodError around
// it.
std::string sweep_chart(const std::vector<SweepPoint>& points, const TimeFormat& format) {
  double most = 0;
  for (const SweepPoint& point : points)
    most = std::max({most, format.number({point.predicted}), format.number({point.measured})});
  const std::string title = fmt::format("Measured step, {}", format.unit());
  const std::string x_label = fmt::format("predicted step, {}", format.unit());
  Chart chart({.title = title,
               .x_label = x_label,
               .x_most = most,
               .y_most = most,
               .x_decimals = decimals_for(most),
               .y_decimals = decimals_for(most),
               .width = 470,
               .height = 400});
  const double end = std::min(chart.x_end(), chart.y_end());
  const double low = end / (1 + kGoodError);
  chart.add(
      fmt::format("<path class=\"band\" d=\"M{:.1f} {:.1f} L{:.1f} {:.1f} L{:.1f} {:.1f} L{:.1f} "
                  "{:.1f} Z\"/>\n",
                  chart.x(0), chart.y(0), chart.x(low), chart.y(end), chart.x(end), chart.y(end),
                  chart.x(end), chart.y(low)));
  chart.line({{0, 0}, {end, end}}, "guide");
  for (std::size_t i = 0; i < points.size(); ++i) {
    const double x = chart.x(format.number({points[i].predicted}));
    const double y = chart.y(format.number({points[i].measured}));
    chart.add(fmt::format(
        "<circle class=\"dot{}\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"5\"><title>{}</title></circle>"
        "<text class=\"dot-name\" x=\"{:.1f}\" y=\"{:.1f}\">{}</text>\n",
        i == 0 ? " best" : "", x, y, escape_html(workload::to_string(points[i].run->plan.strategy)),
        x + 8, y + 4, i + 1));
  }
  return chart.svg();
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
    rows.push_back(
        {.cells = {fmt::format("{}", i + 1), fmt::format("{}", faster + 1), strategy_cell(run.plan),
                   format(run.plan.prediction.step_time), format(run.measured.step_time),
                   signed_percent(prediction_error(run))},
         .style = ""});
  }
  return html_table({{"#", true},
                     {"measured #", true},
                     {"Plan", false},
                     {"Predicted", true},
                     {"Measured", true},
                     {"Error", true}},
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
  hint += fmt::format("The first {} steps warm up and are left out of the median.",
                      result.main.measured.warm_up_steps);
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
  hint += " On the dashed line the prediction is exact; the band is 15 % around it.";
  return section("Does the order hold?", hint, body);
}

}  // namespace regatta::report
