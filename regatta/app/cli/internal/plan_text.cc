#include "regatta/app/cli/internal/plan_text.h"

#include <vector>

#include <fmt/format.h>

#include "regatta/base/core/text.h"
#include "regatta/base/core/units.h"

namespace regatta::cli {
std::string share_text(Seconds part, Seconds all) {
  return fmt::format("{:.1f} %", 100 * (part / all));
}

void print_parts(const plan::StepBreakdown& step) {
  const Seconds all = step.total();
  std::vector<std::vector<std::string>> rows = {{"part", "time", "share"}};
  for (const plan::NamedStepPart& part : plan::named_step_parts(step)) {
    if (part.time.value <= 0) continue;
    rows.push_back({part.name, format_seconds(part.time), share_text(part.time, all)});
  }
  rows.push_back({"step", format_seconds(all), "100 %"});
  fmt::print("{}", format_table(rows));
}

void print_memory(const plan::Estimate& estimate, Bytes capacity) {
  const cost::GpuMemory& m = estimate.memory;
  fmt::print(
      "\nmemory of a device of stage {}: {} of {}: {}; weights {}, gradients {}, optimizer {}, "
      "activations {}, working space {}, context {}\n",
      estimate.worst_stage, format_bytes(m.total()), format_bytes(capacity),
      to_string(plan::memory_fit(m, capacity)), format_bytes(m.weights), format_bytes(m.gradients),
      format_bytes(m.optimizer), format_bytes(m.activations), format_bytes(m.working),
      format_bytes(m.context));
}

}  // namespace regatta::cli
