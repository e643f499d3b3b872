// Spans and phases of workload/job.h.
#include <cstddef>
#include <optional>
#include <string>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "regatta/model/workload/internal/json_reader.h"
#include "regatta/model/workload/job.h"

namespace regatta::workload {
namespace {

using nlohmann::json;

std::string key_of(Phase phase) {
  return std::string(to_string(phase)) + "_s";
}

}  // namespace

json span_to_json(const Span& span) {
  return {{"rank", span.rank.value},     {"phase", to_string(span.phase)},
          {"step", span.step},           {"micro_batch", span.micro_batch},
          {"layer", span.layer},         {"background", span.background},
          {"start_s", span.start.value}, {"duration_s", span.duration.value}};
}

Result<Span> span_from_json(const json& object) {
  Span span;
  JsonReader reader(object, "span");
  std::string phase;
  reader.read("rank", span.rank.value);
  reader.read("phase", phase);
  reader.read("step", span.step);
  reader.read("micro_batch", span.micro_batch);
  reader.read("layer", span.layer);
  reader.read("background", span.background);
  reader.read("start_s", span.start);
  reader.read("duration_s", span.duration);
  const std::optional<Phase> named = phase_named(phase);
  if (!named) reader.fail(fmt::format("'{}' is not a phase", phase));
  span.phase = named.value_or(Phase::kOther);
  return finish(reader, span);
}

json timeline_to_json(const Timeline& timeline) {
  json list = json::array();
  for (const Span& span : timeline)
    list.push_back(span_to_json(span));
  return list;
}

Result<Timeline> timeline_from_json(const json& list) {
  if (!list.is_array()) return Error{Code::kInvalidInput, "timeline: not a list of spans"};
  Timeline timeline;
  for (const json& item : list) {
    REGATTA_TRY(span, span_from_json(item));
    timeline.push_back(span);
  }
  return timeline;
}

json phases_to_json(const PhaseTimes& phases) {
  json object = json::object();
  for (std::size_t i = 0; i < kPhaseCount; ++i)
    object[key_of(static_cast<Phase>(i))] = phases.times[i].value;
  return object;
}

Result<PhaseTimes> phases_from_json(const json& object) {
  PhaseTimes phases;
  JsonReader reader(object, "phases");
  for (std::size_t i = 0; i < kPhaseCount; ++i)
    reader.read(key_of(static_cast<Phase>(i)).c_str(), phases.times[i]);
  return finish(reader, phases);
}

}  // namespace regatta::workload
