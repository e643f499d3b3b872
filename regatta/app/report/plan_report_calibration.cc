// Software stacks that were fitted: to published runs, and to the user's own.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "regatta/app/report/internal/number_text.h"
#include "regatta/app/report/internal/plan_parts.h"
#include "regatta/app/report/plan_report.h"
#include "regatta/base/core/text.h"

namespace regatta::report {
namespace {

using cost::StackScalar;
using nlohmann::json;
using replay::CalibratedRun;

std::string scalar_text(const cost::SoftwareStack& stack, StackScalar scalar) {
  const double value = cost::scalar_of(stack, scalar);
  if (cost::to_string(scalar).ends_with("_s")) return format_seconds(Seconds{value});
  return fmt::format("{:.4g}", value);
}

std::string logs_text(const std::vector<replay::TrainingLog>& logs) {
  std::string text;
  for (const replay::TrainingLog& log : logs) {
    text += fmt::format("{}: a log of {}, {}, {} left out at the beginning, spread {}\n", log.name,
                        log.framework, pluralized(log.steps.lines, "step line"), log.steps.left_out,
                        format_percent(log.steps.spread));
  }
  return text.empty() ? text : text + "\n";
}

std::string error_text(double predicted, double measured) {
  return signed_percent(predicted / measured - 1);
}

std::string own_runs_table(const std::vector<CalibratedRun>& runs) {
  std::vector<std::vector<std::string>> table = {
      {"run", "measured", "before", "error", "after", "error", "left out", "error"}};
  for (const CalibratedRun& run : runs) {
    table.push_back({run.name, format_seconds({run.measured}), format_seconds({run.before}),
                     error_text(run.before, run.measured), format_seconds({run.after}),
                     error_text(run.after, run.measured), format_seconds({run.left_out}),
                     error_text(run.left_out, run.measured)});
  }
  return format_table(table);
}

std::string errors_table(const replay::OwnCalibration& own) {
  std::vector<std::vector<std::string>> table = {{"predictions", "MAPE", "median", "worst"}};
  const auto add = [&](const char* name, const replay::PredictionScore& score) {
    table.push_back({name, format_percent(score.mape), format_percent(score.median),
                     format_percent(score.worst)});
  };
  add("before", own.before);
  add("after", own.after);
  add("of runs left out of the fit", own.left_out);
  return format_table(table);
}

std::string scalars_table(const OwnCalibrationReport& report) {
  const replay::OwnCalibration& own = report.own;
  const cost::SoftwareStack fitted = cost::calibrated(report.stack, own.calibration);
  if (own.contradicts)
    return "fits to some of these runs made the predictions of the others worse: no scalar moves\n";
  if (own.calibration.fitted.empty()) return "";
  std::vector<std::vector<std::string>> table = {{"scalar", "before", "after", "meaning"}};
  for (const StackScalar scalar : own.calibration.fitted)
    table.push_back({to_string(scalar), scalar_text(report.stack, scalar),
                     scalar_text(fitted, scalar), std::string(cost::meaning_of(scalar))});
  return format_table(table);
}

std::string scalar_names(const std::vector<StackScalar>& scalars) {
  std::vector<std::string> names;
  for (const StackScalar scalar : scalars)
    names.push_back(to_string(scalar));
  return join(names, ", ");
}

std::string range_text(const char* kind, const cost::OwnRuns& own) {
  if (own.count == 0) return "";
  return fmt::format(
      "eight of ten steps of {} are expected within {} and {} of the prediction ({})\n", kind,
      signed_percent(own.range.low - 1), signed_percent(own.range.high - 1),
      pluralized(own.count, "run"));
}

}  // namespace

std::string fitted_stack_text(const replay::FittedStack& fitted) {
  std::vector<std::string> scalars;
  for (const StackScalar scalar : fitted.fitted)
    scalars.push_back(to_string(scalar) + " " + scalar_text(fitted.stack, scalar));
  return fmt::format("\n{}: {}\n", fitted.stack.name, join(scalars, ", "));
}

std::string own_calibration_text(const OwnCalibrationReport& report) {
  const replay::OwnCalibration& own = report.own;
  std::string text =
      fmt::format("{}stack {}, {} on {}\n\n{}\n{}\n{}", logs_text(report.logs), report.stack.name,
                  pluralized(own.calibration.runs(), "run"), own.calibration.device,
                  own_runs_table(own.runs), errors_table(own), scalars_table(report));
  if (!own.undetermined.empty() && !own.contradicts)
    text += fmt::format("not determined by these runs, and left as they were: {}\n",
                        scalar_names(own.undetermined));
  text += range_text("dense models", own.calibration.dense);
  text += range_text("models with experts", own.calibration.experts);
  return text + (report.path.empty() ? "not saved: give --cluster CLUSTER or --out FILE\n"
                                     : fmt::format("saved: {}\n", report.path));
}

json own_calibration_json(const OwnCalibrationReport& report) {
  const replay::OwnCalibration& own = report.own;
  const cost::SoftwareStack fitted = cost::calibrated(report.stack, own.calibration);
  json runs = json::array();
  for (const CalibratedRun& run : own.runs) {
    runs.push_back({{"run", run.name},
                    {"measured_s", run.measured},
                    {"before_s", run.before},
                    {"after_s", run.after},
                    {"left_out_s", run.left_out}});
  }
  json scalars = json::object();
  for (const StackScalar scalar : cost::all_stack_scalars()) {
    const auto& undetermined = own.undetermined;
    scalars[to_string(scalar)] = {{"before", cost::scalar_of(report.stack, scalar)},
                                  {"after", cost::scalar_of(fitted, scalar)},
                                  {"determined", std::find(undetermined.begin(), undetermined.end(),
                                                           scalar) == undetermined.end()}};
  }
  json logs = json::array();
  for (const replay::TrainingLog& log : report.logs) {
    logs.push_back({{"log", log.name},
                    {"framework", log.framework},
                    {"step_lines", log.steps.lines},
                    {"left_out", log.steps.left_out},
                    {"spread", log.steps.spread}});
  }
  json all = {{"stack", report.stack.name},
              {"device", own.calibration.device},
              {"source", own.calibration.source},
              {"logs", logs},
              {"runs", runs},
              {"scalars", scalars},
              {"before", score_json(own.before)},
              {"after", score_json(own.after)},
              {"left_out", score_json(own.left_out)},
              {"contradicts", own.contradicts}};
  if (!report.path.empty()) all["saved"] = report.path;
  return all;
}

}  // namespace regatta::report
