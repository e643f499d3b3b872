#include <cmath>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "regatta/app/report/html_text.h"
#include "regatta/app/report/internal/html_sections.h"
#include "regatta/base/core/units.h"
#include "regatta/model/topo/cluster.h"
#include "regatta/model/workload/model.h"

namespace regatta::report {
namespace {

std::string speedup_figure(const RunResult& result) {
  const auto ratio = speedup(result);
  if (!ratio) return "";
  const TimeFormat format(result.compare->measured.step_time);
  return figure("Speedup", fmt::format("{:.2f}x", *ratio),
                "over pure data parallelism, " + format(result.compare->measured.step_time),
                *ratio >= 1 ? "good" : "bad");
}

std::string sweep_figure(const RunResult& result) {
  const auto correlation = sweep_spearman(result);
  if (!correlation) return "";
  return figure("Rank correlation", fmt::format("{:.3f}", *correlation),
                fmt::format("Spearman, {} plans trained", result.sweep.size()));
}

}  // namespace

std::string header_section(const RunResult& result) {
  const workload::ModelShape& model = result.job.model;
  std::string html = fmt::format(
      "<header>\n<div class=\"brand\">regatta</div>\n<h1>{} <small>on {}</small></h1>\n",
      escape_html(result.job.name), escape_html(result.cluster.name));
  html += sentence(fmt::format(
      "{} layers, hidden {}, {} heads, sequence {}, vocabulary {}: {} parameters, {}; "
      "{} samples ({} tokens) per step",
      model.layers, model.hidden, model.heads, model.seq, model.vocab,
      count_text(workload::total_parameters(model)), workload::to_string(result.job.precision),
      result.job.global_batch, static_cast<long long>(result.job.global_batch) * model.seq));
  html += sentence(fmt::format("{} devices on {} servers; started {}",
                               topo::all_devices(result.cluster).size(),
                               result.cluster.servers.size(), result.started_at));
  return html + "</header>\n";
}

std::string figures_section(const RunResult& result) {
  const PlanRun& run = result.main;
  const TimeFormat format(run.measured.step_time);
  const double error = prediction_error(run);
  const std::size_t trained = run.measured.steps.size();
  std::string html = "<div class=\"cards\">\n";
  html += figure("Measured step", format(run.measured.step_time),
                 fmt::format("median; {} to {}", format(run.measured.step_time_min),
                             format(run.measured.step_time_max)));
  html += figure("Predicted step", format(run.plan.prediction.step_time), "before the run");
  html += figure("Prediction error", signed_percent(error),
                 error < 0 ? "the run was slower" : "the run was faster",
                 std::abs(error) <= kGoodError ? "good" : "bad");
  html += speedup_figure(result);
  html += figure("Throughput", fmt::format("{:.0f}", run.measured.tokens_per_s),
                 fmt::format("tokens/s over {} steps, the first {} left out", trained,
                             run.measured.warm_up_steps));
  html +=
      figure("Memory", format_bytes(run.plan.prediction.memory.total()),
             fmt::format("predicted, rank {} (the most)", run.plan.prediction.memory_rank.value));
  html += sweep_figure(result);
  return html + "</div>\n";
}

std::string footer_section(const RunResult& result) {
  std::string html = "<footer>\n";
  if (!result.machine.empty()) html += sentence("Machine: " + result.machine + ".");
  html += sentence("Rates of devices and paths: " + result.rates_source + ".");
  if (!result.speed_note.empty()) html += sentence("Device speed: " + result.speed_note + ".");
  html += sentence("Written by regatta at the end of the run that started " + result.started_at +
                   ". The same figures for programs: result.json; for a trace viewer: trace.json.");
  return html + "</footer>\n";
}

}  // namespace regatta::report
