#include <cmath>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "regatta/app/report/internal/html_sections.h"
#include "regatta/app/report/internal/html_text.h"
#include "regatta/base/core/units.h"
#include "regatta/model/topo/cluster.h"
#include "regatta/model/workload/model.h"

namespace regatta::report {
namespace {

std::string speedup_tile(const RunResult& result) {
  const auto ratio = speedup(result);
  if (!ratio) return "";
  const TimeFormat format(result.compare->measured.step_time);
  return tile("Speedup", fmt::format("{:.2f}x", *ratio),
              "over pure data parallelism, " + format(result.compare->measured.step_time),
              *ratio >= 1 ? "good" : "bad");
}

std::string sweep_tile(const RunResult& result) {
  const auto correlation = sweep_spearman(result);
  if (!correlation) return "";
  return tile("Rank correlation", fmt::format("{:.3f}", *correlation),
              fmt::format("Spearman, {} plans trained", result.sweep.size()));
}

std::string deviation_tile(const PlanRun& run) {
  const double difference = deviation(run);
  const bool is_within = std::abs(difference) <= kStatedError;
  return tile(
      "Against predicted", signed_percent(difference),
      fmt::format("{} than predicted, {} the stated {:.0f} %", difference < 0 ? "faster" : "slower",
                  is_within ? "within" : "beyond", 100 * kStatedError),
      deviation_style(run));
}

}  // namespace

std::string_view deviation_style(const PlanRun& run) {
  return deviation(run) > kStatedError ? "bad" : "";
}

std::string deviation_html(const PlanRun& run) {
  const std::string_view style = deviation_style(run);
  const std::string text = signed_percent(deviation(run));
  return style.empty() ? text : fmt::format("<span class=\"{}\">{}</span>", style, text);
}

PageFrame frame_of(const RunResult& result) {
  PageFrame frame{
      .kind = "training run",
      .title = result.job.name,
      .place = result.cluster.name,
      .facts = {model_facts(result.job.model, result.job.precision, result.job.global_batch),
                fmt::format("{} devices on {} servers; started {}",
                            topo::all_devices(result.cluster).size(), result.cluster.servers.size(),
                            result.started_at)},
      .origin = {}};
  if (!result.machine.empty()) frame.origin.push_back("Machine: " + result.machine + ".");
  frame.origin.push_back("Rates of devices and paths: " + result.rates_source + ".");
  if (!result.speed_note.empty())
    frame.origin.push_back("Device speed: " + result.speed_note + ".");
  frame.origin.push_back(
      "The same figures for programs: result.json; for a trace viewer: trace.json.");
  return frame;
}

std::string tiles_section(const RunResult& result) {
  const PlanRun& run = result.main;
  const TimeFormat format(run.measured.step_time);
  std::string tiles = tile("Measured step", format(run.measured.step_time),
                           fmt::format("median; {} to {}", format(run.measured.step_time_min),
                                       format(run.measured.step_time_max)));
  tiles += tile("Predicted step", format(run.plan.prediction.step_time), "before the run");
  tiles += deviation_tile(run) + speedup_tile(result);
  tiles += tile("Throughput", fmt::format("{:.0f}", run.measured.tokens_per_s),
                fmt::format("tokens/s over {} steps without the first {}",
                            run.measured.steps.size(), run.measured.warm_up_steps));
  tiles += tile(
      "Memory", format_bytes(run.plan.prediction.memory.total()),
      fmt::format("predicted, on the fullest rank ({})", run.plan.prediction.memory_rank.value));
  return tile_row(tiles + sweep_tile(result));
}

}  // namespace regatta::report
