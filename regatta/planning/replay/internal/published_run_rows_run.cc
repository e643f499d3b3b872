// Rows that say all of a run themselves: the general form of published.h.
#include <optional>
#include <string>

#include <fmt/format.h>

#include "regatta/base/core/text.h"
#include "regatta/model/cost/software_stack.h"
#include "regatta/model/topo/presets.h"
#include "regatta/model/workload/model.h"
#include "regatta/planning/replay/internal/published_run_rows.h"

namespace regatta::replay {
namespace {

using workload::Precision;
using workload::Recompute;

workload::ModelShape model_of(RowReader& reader) {
  const workload::ModelPreset* preset = workload::find_model_preset(reader.text("model"));
  if (preset == nullptr) {
    reader.refuse("model", "the name of a model preset");
    return {};
  }
  workload::ModelShape model = preset->model;
  model.seq = reader.whole_or("seq", model.seq);
  model.heads = reader.whole_or("heads", model.heads);
  model.vocab = reader.whole_or("vocab", model.vocab);
  if (!reader.text("capacity").empty()) model.experts.capacity = reader.positive("capacity");
  return model;
}

topo::ServerType server_of_row(RowReader& reader) {
  if (reader.text("server").empty() && reader.defaults().server != nullptr)
    return *reader.defaults().server;
  if (const topo::ServerType* server = topo::find_server_preset(reader.text("server")))
    return *server;
  reader.refuse("server", "the name of a server preset");
  return {};
}

workload::Strategy strategy_of(RowReader& reader, int gpus) {
  workload::Strategy strategy{.tp = reader.whole_or("tp", 1),
                              .pp = reader.whole_or("pp", 1),
                              .micro_batch = reader.whole("mbs")};
  strategy.cp = reader.whole_or("cp", 1);
  strategy.ep = reader.whole_or("ep", 1);
  strategy.etp = reader.whole_or("etp", 0);
  const std::string zero = reader.text("zero");
  if (!zero.empty() && zero != "0") strategy.zero = reader.whole("zero");
  if (strategy.zero > 3) reader.refuse("zero", "a whole number from 0 to 3");
  const double held = static_cast<double>(strategy.tp) * strategy.pp * strategy.cp;
  if (held > gpus || gpus % static_cast<int>(held) != 0) {
    reader.refuse("gpus", "a multiple of tp x pp x cp");
    return strategy;
  }
  strategy.dp = gpus / static_cast<int>(held);
  // Stacks that split tensors share the tokens between the products, too; those before 2022 did
  // not.
  const std::string sp = reader.text("sp");
  if (!sp.empty() && sp != "yes" && sp != "no") reader.refuse("sp", "yes or no");
  strategy.sequence_parallel = strategy.tp > 1 && sp != "no";
  interleave(strategy, reader.whole_or("vp", 1));
  if (!reader.text("schedule").empty()) {
    const auto schedule = workload::schedule_named(reader.text("schedule"));
    if (!schedule) reader.refuse("schedule", "the name of a schedule");
    strategy.schedule = schedule.value_or(strategy.schedule);
  }
  if (!reader.text("recompute").empty()) {
    const auto recompute = workload::recompute_named(reader.text("recompute"));
    if (!recompute) reader.refuse("recompute", "none, selective or full");
    strategy.recompute = recompute.value_or(Recompute::kNone);
  }
  return strategy;
}

// Two of them may contradict each other.
void check_figures(RowReader& reader) {
  const char* first = nullptr;
  for (const char* column : {"step_s", "tokens_s_gpu", "tflops_gpu"}) {
    if (reader.text(column).empty()) continue;
    if (first != nullptr) reader.refuse(column, fmt::format("left empty beside {}", first).c_str());
    first = column;
  }
}

// The speed, given in one of three forms.
double step_of(RowReader& reader, const PublishedRun& run, int gpus) {
  if (reader.has("step_s")) return reader.positive("step_s");
  if (reader.has("tflops_gpu")) {
    return model_flops(run.model, run.global_batch).value /
           (reader.positive("tflops_gpu") * 1e12 * gpus);
  }
  const double tokens = static_cast<double>(run.global_batch) * run.model.seq;
  return tokens / (reader.positive("tokens_s_gpu") * gpus);
}

}  // namespace

std::vector<PublishedRun> run_row(RowReader& reader) {
  PublishedRun run;
  run.model = model_of(reader);
  run.server = server_of_row(reader);
  const int gpus = reader.whole("gpus");
  run.strategy = strategy_of(reader, gpus);
  run.is_recompute_open = has_experts(run.model) && reader.text("recompute").empty();
  run.global_batch = reader.whole("gbs");
  const auto precision = workload::precision_named(reader.text("precision"));
  if (!precision) reader.refuse("precision", "fp16, bf16, fp8, mxfp8 or nvfp4");
  run.precision = precision.value_or(Precision::kBf16);
  run.stack = reader.text("stack").empty() ? reader.defaults().stack : reader.text("stack");
  if (cost::find_software_stack(run.stack) == nullptr)
    reader.refuse("stack", "the name of a software stack");
  check_figures(reader);
  if (!reader.missing().empty()) return {};
  run.measured = step_of(reader, run, gpus);
  return {run};
}

}  // namespace regatta::replay
