#include "regatta/platform/trainer/internal/step_metrics.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "regatta/base/core/json.h"

namespace regatta::trainer {

Result<std::optional<TrainedStep>> StepMetrics::add(int rank, const nlohmann::json& event) {
  const JsonReader reader(event, "rank " + std::to_string(rank) + ": event");
  std::string kind;
  reader.read("event", kind);
  if (kind == "memory") {
    double bytes = 0;
    reader.read("bytes", bytes);
    resident_bytes_ = std::max(resident_bytes_, bytes);
  }
  if (kind != "step") return reader.finish(std::optional<TrainedStep>());
  TrainedStep step;
  double tokens = 0;
  reader.read("step", step.step, IntRange{0});
  // A loss that is no number is null in JSON.
  if (reader.has("loss")) reader.read("loss", step.loss);
  reader.read("time_s", step.time_s);
  reader.read("tokens", tokens);
  REGATTA_TRY_DO(reader.status());
  Partial& partial = partial_[step.step];
  if (!reader.has("loss")) step.loss = partial.step.loss;
  step.time_s = std::max(step.time_s, partial.step.time_s);
  step.tokens_per_s = step.time_s > 0 ? tokens / step.time_s : 0;
  partial.step = step;
  if (++partial.reported < ranks_) return std::optional<TrainedStep>();
  partial_.erase(step.step);
  return std::optional(step);
}

std::string metric_lines(const TrainedStep& step, double resident_bytes, std::int64_t now_ms) {
  std::string lines;
  const auto add = [&](const char* name, const char* unit, double value) {
    const nlohmann::ordered_json line = {
        {"name", name}, {"step", step.step}, {"value", value}, {"unit", unit}, {"time_ms", now_ms}};
    lines += line.dump() + '\n';
  };
  add("loss", "nat", step.loss);
  add("step_time_s", "s", step.time_s);
  add("tokens_per_s", "token/s", step.tokens_per_s);
  if (resident_bytes > 0) add("resident_bytes", "B", resident_bytes);
  return lines;
}

}  // namespace regatta::trainer
