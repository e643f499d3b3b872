// Spans and phases of workload/job.h.
#include <cstddef>
#include <string>

#include <nlohmann/json.hpp>

#include "regatta/base/core/json.h"
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

Span read_span(const JsonReader& reader) {
  Span span;
  reader.read("rank", span.rank);
  reader.read("phase", span.phase, kPhases);
  reader.read("step", span.step);
  reader.read("micro_batch", span.micro_batch);
  reader.read("layer", span.layer);
  reader.read("background", span.background);
  reader.read("start_s", span.start);
  reader.read("duration_s", span.duration);
  return span;
}

json timeline_to_json(const Timeline& timeline) {
  json list = json::array();
  for (const Span& span : timeline)
    list.push_back(span_to_json(span));
  return list;
}

Result<Timeline> timeline_from_json(const json& list) {
  const JsonReader reader(list, "timeline");
  Timeline timeline;
  for (const JsonReader& item : reader.items())
    timeline.push_back(read_span(item));
  return reader.finish(timeline);
}

json phases_to_json(const PhaseTimes& phases) {
  json object = json::object();
  for (std::size_t i = 0; i < kPhaseCount; ++i)
    object[key_of(kPhases[i])] = phases.times[i].value;
  return object;
}

Result<PhaseTimes> phases_from_json(const json& object) {
  PhaseTimes phases;
  const JsonReader reader(object, "phases");
  for (std::size_t i = 0; i < kPhaseCount; ++i)
    reader.read(key_of(kPhases[i]), phases.times[i]);
  return reader.finish(phases);
}

}  // namespace regatta::workload
