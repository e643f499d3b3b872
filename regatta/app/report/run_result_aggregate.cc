#include <algorithm>
#include <cstddef>
#include <string>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "regatta/app/report/run_result.h"
#include "regatta/base/core/stats.h"
#include "regatta/model/workload/job.h"

namespace regatta::report {
namespace {

// Every phase's median over the steps, scaled so that all sum to `step_time`.
workload::PhaseTimes typical_phases(const std::vector<workload::PhaseTimes>& steps,
                                    Seconds step_time) {
  workload::PhaseTimes phases;
  for (std::size_t i = 0; i < workload::kPhaseCount; ++i) {
    std::vector<double> values;
    values.reserve(steps.size());
    for (const auto& step : steps) {
      values.push_back(step.times[i].value);
    }
    phases.times[i] = Seconds{median(std::move(values))};
  }
  const Seconds total = phases.total();
  if (total.value <= 0) return phases;
  for (auto& time : phases.times) {
    time = time * (step_time / total);
  }
  return phases;
}

Error of_rank(Rank rank, const Error& error) {
  return {error.code, fmt::format("rank {}: event: {}", rank.value, error.message)};
}

}  // namespace

Aggregator::Aggregator(int world_size) : world_size_(world_size) {}

Result<std::optional<StepRecord>> Aggregator::add_step(Rank rank, const JsonReader& event) {
  StepRecord step;
  long long tokens = 0;
  event.read("step", step.step);
  event.read("time_s", step.time);
  event.read("loss", step.loss);
  event.read("tokens", tokens);
  REGATTA_TRY_DO(event.status());
  auto& state = steps_[step.step];
  if (!state.reported.insert(rank.value).second) return std::optional<StepRecord>();
  tokens_ = tokens;
  step.time = std::max(state.record.time, step.time);
  state.record = step;
  if (static_cast<int>(state.reported.size()) < world_size_) return std::optional<StepRecord>();
  return std::optional(state.record);
}

Result<std::optional<StepRecord>> Aggregator::add(Rank rank, const nlohmann::json& event) {
  const JsonReader reader(event, fmt::format("rank {}: event", rank.value));
  const auto kind = reader.at("event").as<std::string>();
  if (kind == "step") return add_step(rank, reader);
  if (kind == "phases") {
    const auto phases = workload::phases_from_json(reader.at("phases").raw());
    if (!phases) return of_rank(rank, phases.error());
    const int step = reader.at("step").as<int>();
    REGATTA_TRY_DO(reader.status());
    auto& state = steps_[step];
    ++state.phases_reported;
    for (std::size_t i = 0; i < workload::kPhaseCount; ++i)
      state.phases.times[i] += phases->times[i];
  }
  if (kind == "spans") {
    const auto spans = workload::timeline_from_json(reader.at("spans").raw());
    if (!spans) return of_rank(rank, spans.error());
    timeline_.insert(timeline_.end(), spans->begin(), spans->end());
  }
  return reader.finish(std::optional<StepRecord>());
}

std::vector<const Aggregator::StepState*> Aggregator::complete_steps() const {
  std::vector<const StepState*> complete;
  for (const auto& [step, state] : steps_) {
    if (static_cast<int>(state.reported.size()) == world_size_) complete.push_back(&state);
  }
  return complete;
}

MeasuredRun Aggregator::measured(int warm_up, const std::vector<plan::LinkTraffic>& traffic) const {
  MeasuredRun measured;
  const auto complete = complete_steps();
  const int count = static_cast<int>(complete.size());
  measured.warm_up_steps = std::min(warm_up, count / 2);
  std::vector<double> times;
  std::vector<workload::PhaseTimes> phases;
  for (int i = 0; i < count; ++i) {
    const StepState& state = *at(complete, i);
    measured.steps.push_back(state.record);
    if (i < measured.warm_up_steps) continue;
    times.push_back(state.record.time.value);
    if (state.phases_reported == world_size_) phases.push_back(state.phases);
  }
  if (!times.empty()) {
    const auto [least, most] = std::minmax_element(times.begin(), times.end());
    measured.step_time_min = Seconds{*least};
    measured.step_time_max = Seconds{*most};
    measured.step_time = Seconds{median(times)};
    measured.tokens_per_s = static_cast<double>(tokens_) / measured.step_time.value;
  }
  measured.phases = typical_phases(phases, measured.step_time);
  measured.timeline = timeline_;
  if (!timeline_.empty()) {
    const Seconds start =
        std::min_element(timeline_.begin(), timeline_.end(), [](const auto& a, const auto& b) {
          return a.start < b.start;
        })->start;
    for (auto& span : measured.timeline) {
      span.start -= start;
    }
  }
  for (auto link : traffic) {
    link.bytes = Bytes{count > 0 ? link.bytes.value / count : 0};
    if (link.bytes.value > 0) measured.traffic.push_back(link);
  }
  return measured;
}

}  // namespace regatta::report
