#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "regatta/app/report/internal/cluster_sizes_html.h"
#include "regatta/app/report/internal/html_text.h"
#include "regatta/app/report/internal/stage_memory_svg.h"
#include "regatta/app/report/internal/stage_timeline_svg.h"
#include "regatta/app/report/internal/trace_json.h"
#include "regatta/app/report/pages.h"
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
    rows.push_back({.cells = {color_key(share.style, share.name), share.text,
                              format_percent(share.value / full)},
                    .style = ""});
  }
  rows.push_back(
      {.cells = {std::string(total.name), total.text, format_percent(total.value / full)},
       .style = "total"});
  return "<div class=\"narrow\">" +
         html_table({{"Part", false}, {std::string(amount), true}, {"Share", true}}, rows) +
         "</div>\n";
}

// The phases of a simulated step in the colours of the parts that they are nearest to.
std::vector<Share> phase_shares(const workload::PhaseTimes& phases) {
  using workload::Phase;
  const TimeFormat format(phases.total());
  const auto share = [&](std::string_view style, std::string_view name, Phase phase) {
    return Share{style, name, phases[phase].value, format(phases[phase])};
  };
  return {share("matmul", "forward", Phase::kForward),
          share("attention", "backward", Phase::kBackward),
          share("recompute", "recomputation", Phase::kRecompute),
          share("tp_comm", "tensor-parallel communication", Phase::kTpComm),
          share("pp_comm", "messages between stages", Phase::kPpComm),
          share("dp_comm", "data-parallel exchange", Phase::kDpComm),
          share("bubble", "pipeline bubble", Phase::kBubble),
          share("optimizer", "optimizer", Phase::kOptimizer),
          share("host", "data loading and gaps", Phase::kOther)};
}

std::vector<Share> step_shares(const PlanPage& page) {
  if (page.phases != nullptr) return phase_shares(*page.phases);
  const plan::StepBreakdown& step = page.timeline.estimate.step;
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
  const ColumnFormat format = ColumnFormat::bytes(memory.total());
  const auto share = [&](std::string_view style, std::string_view name, double bytes) {
    return Share{style, name, bytes, format(bytes)};
  };
  return {share("weights", "weights", memory.weights),
          share("gradients", "gradients", memory.gradients),
          share("state", "optimizer state", memory.optimizer),
          share("activations", "activations", memory.activations),
          share("working", "working space", memory.working),
          share("context", "driver and libraries", memory.context)};
}

PageFrame frame_of(const PlanPage& page) {
  std::vector<std::string> facts = {
      model_facts(page.model, page.precision, page.global_batch),
      fmt::format("{}: {} devices of {}, estimated for {}", to_string(page.strategy),
                  page.strategy.world_size(), page.device, page.stack_name)};
  if (!page.stack_assumes.empty())
    facts.push_back(fmt::format("{}: {}", page.stack_name, page.stack_assumes));
  return {.kind = "training plan",
          .title = page.job_name,
          .place = page.cluster_name,
          .facts = facts,
          .origin = {"All times are predicted, in closed form and by a simulation; nothing was "
                     "run."}};
}

std::string interval_text(const PlanPage& page) {
  if (!page.interval) return "";
  return fmt::format("; 80 % within {} to {}", format_seconds(page.interval->low),
                     format_seconds(page.interval->high));
}

std::string tiles(const PlanPage& page) {
  const plan::Estimate& estimate = page.timeline.estimate;
  const Seconds step = estimate.step.total();
  const double devices = page.strategy.world_size();
  const double tokens = static_cast<double>(page.global_batch) * page.model.seq / step.value;
  const double flops = model_flops(page.model, page.global_batch).value / step.value / devices;
  const double holds = estimate.memory.total() / static_cast<double>(page.capacity.value);
  return tile_row(
      tile("Predicted step", TimeFormat(step)(step),
           (page.phases != nullptr ? "simulated" : "in closed form") + interval_text(page)) +
      tile("Throughput", fmt::format("{:.0f}", tokens / devices), "tokens/s per device") +
      tile("Model FLOPS", format_flops_per_second({flops}), "per device") +
      tile("Bubble", format_percent(estimate.step.bubble / step),
           fmt::format("of the step, {} micro-batch{}", page.timeline.micro_batches,
                       page.timeline.micro_batches == 1 ? "" : "es")) +
      tile("Memory", format_percent(holds),
           fmt::format("of {}, on the fullest stage ({})", format_bytes(page.capacity),
                       estimate.worst_stage),
           holds <= 1 ? "" : "bad"));
}

std::string agreement(const plan::StageTimeline& timeline) {
  const TimeFormat format(timeline.makespan);
  const double difference = timeline_difference(timeline);
  std::string text = fmt::format("The simulated step takes {}, the closed form gives {}",
                                 format(timeline.makespan), format(timeline.estimate.step.total()));
  if (std::abs(difference) <= kAgrees) return text + ".";
  return text + fmt::format(" ({}): {}, and the closed form uses the slowest stage for all.",
                            signed_percent(difference),
                            timeline.has_equal_stages
                                ? "embedding and output layer make stages differ"
                                : "the stages hold different blocks");
}

std::string timeline_section(const PlanPage& page) {
  const plan::StageTimeline& timeline = page.timeline;
  const std::string body = legend(stage_timeline_legend(timeline)) + stage_timeline_svg(timeline);
  std::string hint = fmt::format(
      "Pipeline stages under {}; the numbers are micro-batches. A long step scrolls sideways and "
      "leaves out its middle; it opens where the pipeline is full.",
      to_string(timeline.schedule));
  if (page.strategy.virtual_stages > 1 || timeline.schedule == workload::PipelineSchedule::kZbV ||
      timeline.schedule == workload::PipelineSchedule::kDualPipe)
    hint += " Every second part of the model that a stage holds is paler.";
  if (timeline.schedule == workload::PipelineSchedule::kDualPipe)
    hint += " Passes of half the height run at once.";
  if (page.strategy.zero >= 2)
    hint +=
        " The data-parallel exchange is drawn at the end; its pieces belong to the "
        "micro-batches.";
  hint +=
      page.phases != nullptr ? " A row is the first rank of its stage." : " " + agreement(timeline);
  return section("One step, stage by stage", hint, body);
}

std::string step_section(const PlanPage& page) {
  const plan::StepBreakdown& step = page.timeline.estimate.step;
  const std::vector<Share> shares = step_shares(page);
  const double full = step.total().value;
  const Share total{"", "step", full, TimeFormat(step.total())(step.total())};
  return section(
      "Where the step goes",
      "Time on the critical path. Communication counts where computation does not hide it.",
      share_bar(shares, full) + share_table("Time", shares, full, total));
}

std::string memory_section(const PlanPage& page) {
  const cost::GpuMemory& memory = page.timeline.estimate.memory;
  const double has = static_cast<double>(page.capacity.value);
  std::vector<Share> shares = memory_shares(memory);
  const double full = std::max(has, memory.total());
  const ColumnFormat format = ColumnFormat::bytes(memory.total());
  const Share total{"", "all", memory.total(), format(memory.total())};
  const std::string table = share_table("Memory", shares, has, total);
  shares.push_back({"free", "free", has - memory.total(), format(has - memory.total())});
  const std::string hint = fmt::format(
      "A device of stage {}, the fullest, at its peak; the bar is {}, shares are of the device's "
      "{}.",
      page.timeline.estimate.worst_stage,
      memory.total() > has ? "the memory that it would need" : "the device",
      format_bytes(page.capacity));
  return section("Memory of a device", hint, share_bar(shares, full) + table);
}

std::string memory_over_time_section(const PlanPage& page) {
  return section(
      "Memory of each stage over the step",
      fmt::format("Under the name of a stage, the most that one of its devices holds; dashed: the "
                  "{} that it has. The time axis is that of the stages above.",
                  format_bytes(page.capacity)),
      legend({{"always", "weights, gradients, optimizer state, working space, libraries"},
              {"activations", "activations of micro-batches in flight"}}) +
          stage_memory_svg(page.timeline, page.capacity));
}

}  // namespace

std::string plan_html(const PlanPage& page) {
  std::string body = tiles(page);
  if (page.sizes != nullptr) body += cluster_sizes_section(*page.sizes, page.picked);
  body += timeline_section(page) + memory_over_time_section(page);
  body += step_section(page) + memory_section(page);
  return html_page(frame_of(page), body);
}

std::string plan_trace(const plan::StageTimeline& timeline) {
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
