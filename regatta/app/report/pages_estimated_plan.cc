#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "regatta/app/report/html_text.h"
#include "regatta/app/report/internal/cluster_sizes_html.h"
#include "regatta/app/report/internal/stage_memory_svg.h"
#include "regatta/app/report/internal/stage_timeline_svg.h"
#include "regatta/app/report/pages.h"
#include "regatta/app/report/trace_json.h"
#include "regatta/base/core/units.h"

namespace regatta::report {
namespace {

// A coloured share of a bar.
struct Share {
  std::string_view style;
  std::string_view name;
  double value = 0;
  std::string text;  // of the value
};

// Beyond it the estimate and the timeline are two answers, and the page says why.
constexpr double kAgrees = 0.01;

std::string key(std::string_view style, std::string_view name) {
  return fmt::format("<i class=\"key {}\"></i>{}", style, name);
}

std::string share_bar(const std::vector<Share>& shares, double full) {
  std::string html = "<div class=\"track tall\"><div class=\"stack\">";
  for (const Share& share : shares) {
    if (share.value <= 0 || full <= 0) continue;
    html += fmt::format("<i class=\"{}\" style=\"width:{:.3f}%\" title=\"{}: {}\"></i>",
                        share.style, 100 * share.value / full, share.name, share.text);
  }
  return html + "</div></div>\n";
}

// Largest first, with the sum below.
std::string share_table(std::string_view amount, std::vector<Share> shares, double full,
                        const Share& total) {
  std::stable_sort(shares.begin(), shares.end(),
                   [](const Share& a, const Share& b) { return a.value > b.value; });
  std::vector<TableRow> rows;
  for (const Share& share : shares) {
    if (share.value <= 0) continue;
    rows.push_back({.cells = {key(share.style, share.name), share.text,
                              fmt::format("{:.1f} %", 100 * share.value / full)},
                    .style = ""});
  }
  rows.push_back({.cells = {std::string(total.name), total.text,
                            fmt::format("{:.1f} %", 100 * total.value / full)},
                  .style = "total"});
  return "<div class=\"narrow\">" +
         html_table({{"Part", false}, {std::string(amount), true}, {"Share", true}}, rows) +
         "</div>\n";
}

std::vector<Share> step_shares(const plan::StepBreakdown& step) {
  const TimeFormat format(step.total());
  const auto share = [&](std::string_view style, std::string_view name, Seconds time) {
    return Share{style, name, time.value, format(time)};
  };
  return {share("matmul", "matrix products", step.matmul),
          share("attention", "attention", step.attention),
          share("passes", "memory-bound operators", step.passes),
          share("recompute", "recomputation", step.recompute),
          share("host", "waiting for the host", step.host),
          share("tp_comm", "tensor-parallel communication", step.tp_comm),
          share("cp_comm", "context-parallel communication", step.cp_comm),
          share("ep_comm", "exchange of tokens between experts", step.ep_comm),
          share("pp_comm", "messages between stages", step.pp_comm),
          share("dp_comm", "data-parallel exchange", step.dp_comm),
          share("bubble", "pipeline bubble", step.bubble),
          share("optimizer", "optimizer", step.optimizer),
          share("offload", "offload", step.offload),
          share("stragglers", "slowest server", step.stragglers)};
}

std::vector<Share> memory_shares(const cost::GpuMemory& memory) {
  const auto share = [](std::string_view style, std::string_view name, double bytes) {
    return Share{style, name, bytes, format_bytes(bytes)};
  };
  return {share("weights", "weights", memory.weights),
          share("gradients", "gradients", memory.gradients),
          share("state", "optimizer state", memory.optimizer),
          share("activations", "activations", memory.activations),
          share("working", "working space", memory.working),
          share("context", "driver and libraries", memory.context)};
}

std::string header(const EstimatedPlanPage& page) {
  const workload::ModelShape& model = page.model;
  std::string html = fmt::format(
      "<header>\n<div class=\"brand\">regatta</div>\n<h1>{} <small>on {}</small></h1>\n",
      escape_html(page.job_name), escape_html(page.cluster_name));
  html += sentence(fmt::format(
      "{}{} layers, hidden {}, {} heads, sequence {}, vocabulary {}: {} parameters, {}; {} samples "
      "({} tokens) per step",
      model.preset.empty() ? "" : model.preset + ": ", model.layers, model.hidden, model.heads,
      model.seq, model.vocab, count_text(total_parameters(model)), to_string(page.precision),
      page.global_batch, static_cast<long long>(page.global_batch) * model.seq));
  html +=
      sentence(fmt::format("{}: {} devices of {}, estimated for {}", to_string(page.strategy),
                           page.strategy.world_size(), page.server.device.name, page.stack_name));
  return html + "</header>\n";
}

std::string figures(const EstimatedPlanPage& page) {
  const plan::Estimate& estimate = page.timeline.estimate;
  const Seconds step = estimate.step.total();
  const double devices = page.strategy.world_size();
  const double tokens = static_cast<double>(page.global_batch) * page.model.seq / step.value;
  const double flops = model_flops(page.model, page.global_batch).value / step.value / devices;
  const double holds =
      estimate.memory.total() / static_cast<double>(page.server.device.memory.value);
  std::string html = "<div class=\"cards\">\n";
  html += figure("Step", TimeFormat(step)(step), "estimated in closed form");
  html += figure("Throughput", fmt::format("{:.0f}", tokens / devices), "tokens/s of one device");
  html +=
      figure("Rate", fmt::format("{:.0f} TFLOPS", flops / 1e12), "model operations of one device");
  html += figure("Bubble", format_percent(estimate.step.bubble / step),
                 fmt::format("of the step, {} micro-batch{}", page.timeline.micro_batches,
                             page.timeline.micro_batches == 1 ? "" : "es"));
  html += figure("Memory", format_percent(holds),
                 fmt::format("of {}, stage {} (the most)", format_bytes(page.server.device.memory),
                             estimate.worst_stage),
                 holds <= 1 ? "" : "bad");
  return html + "</div>\n";
}

std::string agreement(const plan::StageTimeline& timeline) {
  const TimeFormat format(timeline.makespan);
  const double difference = timeline_difference(timeline);
  std::string text = fmt::format("The simulation ends after {}, the estimate is {}",
                                 format(timeline.makespan), format(timeline.estimate.step.total()));
  if (std::abs(difference) <= kAgrees) return text + ".";
  return text + fmt::format(" ({}): {}, and the estimate takes the slowest stage for all of them.",
                            signed_percent(difference),
                            timeline.has_equal_stages
                                ? "embedding and output layer make stages differ"
                                : "the stages hold different blocks");
}

std::string timeline_section(const EstimatedPlanPage& page) {
  const plan::StageTimeline& timeline = page.timeline;
  std::string body = "<div class=\"legend\">";
  for (const LegendEntry& entry : stage_timeline_legend(timeline))
    body += fmt::format("<span>{}</span>", key(entry.style, entry.name));
  body += fmt::format("<span>{}</span></div>\n", key("free", "waiting"));
  body += "<div class=\"scroll\">\n" + stage_timeline_svg(timeline) + "</div>\n";
  std::string hint = fmt::format(
      "Pipeline stages under {}; numbers are those of micro-batches. A long step scrolls sideways, "
      "without its middle.",
      to_string(timeline.schedule));
  if (page.strategy.virtual_stages > 1 || timeline.schedule == workload::PipelineSchedule::kZbV ||
      timeline.schedule == workload::PipelineSchedule::kDualPipe)
    hint += " Paler: every other part of the model that a stage holds.";
  if (timeline.schedule == workload::PipelineSchedule::kDualPipe)
    hint += " Pieces of half the height run at once.";
  if (page.strategy.zero >= 2)
    hint +=
        " The data-parallel exchange is drawn at the end; its pieces belong to the "
        "micro-batches.";
  return section("One step, stage by stage", hint + " " + agreement(timeline), body);
}

std::string step_section(const plan::StepBreakdown& step) {
  const std::vector<Share> shares = step_shares(step);
  const double full = step.total().value;
  const Share total{"", "step", full, TimeFormat(step.total())(step.total())};
  return section("Where the step goes",
                 "On the path that decides it. Of communication, what computation does not hide.",
                 share_bar(shares, full) + share_table("Time", shares, full, total));
}

std::string memory_section(const EstimatedPlanPage& page) {
  const cost::GpuMemory& memory = page.timeline.estimate.memory;
  const double has = static_cast<double>(page.server.device.memory.value);
  std::vector<Share> shares = memory_shares(memory);
  const double full = std::max(has, memory.total());
  const Share total{"", "all", memory.total(), format_bytes(memory.total())};
  const std::string table = share_table("Memory", shares, has, total);
  shares.push_back({"free", "free", has - memory.total(), format_bytes(has - memory.total())});
  const std::string hint = fmt::format(
      "A device of stage {} at its worst moment; the bar is {}, shares are of the device's {}.",
      page.timeline.estimate.worst_stage, memory.total() > has ? "all it would need" : "the device",
      format_bytes(page.server.device.memory));
  return section("What a device holds", hint, share_bar(shares, full) + table);
}

std::string memory_over_time_section(const EstimatedPlanPage& page) {
  const std::string legend =
      fmt::format("<div class=\"legend\"><span>{}</span><span>{}</span></div>\n",
                  key("weights", "weights, gradients, optimizer, working space, libraries"),
                  key("activations", "activations of micro-batches in flight"));
  return section("What each stage holds over the step",
                 fmt::format("Below its name the most that a device of a stage holds; dashed: the "
                             "{} that it has. The axis is that of the stages above.",
                             format_bytes(page.server.device.memory)),
                 legend + "<div class=\"scroll\">\n" +
                     stage_memory_svg(page.timeline, page.server.device.memory) + "</div>\n");
}

}  // namespace

std::string estimated_plan_html(const EstimatedPlanPage& page) {
  std::string html =
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>";
  html += escape_html(page.job_name + " on " + page.cluster_name) + " - regatta</title>\n<style>\n";
  html.append(report_css()).append(gpu_plan_css());
  html += "</style>\n</head>\n<body>\n<main>\n";
  html += header(page) + figures(page);
  if (page.sizes != nullptr) html += cluster_sizes_section(*page.sizes, page.picked);
  html += timeline_section(page) + memory_over_time_section(page);
  html += step_section(page.timeline.estimate.step) + memory_section(page);
  html += "<footer>\n" +
          sentence("Written by regatta from a closed form and a simulation; nothing was run.") +
          "</footer>\n";
  return html + "</main>\n</body>\n</html>\n";
}

std::string estimated_plan_trace(const plan::StageTimeline& timeline) {
  std::vector<std::string> stages;
  for (std::size_t stage = 0; stage < timeline.rows.size(); ++stage)
    stages.push_back(fmt::format("stage {}", stage));
  std::vector<CounterTrack> counters;
  for (std::size_t stage = 0; stage < timeline.memory.size(); ++stage) {
    CounterTrack counter{
        .name = fmt::format("memory of stage {}", stage), .unit = "bytes", .values = {}};
    for (const plan::MemoryPoint& point : timeline.memory[stage])
      counter.values.push_back({point.at, point.bytes});
    counters.push_back(std::move(counter));
  }
  return trace_json_text("estimated", stages, phases_of(timeline), counters);
}

}  // namespace regatta::report
