// measure/measurement_schedule_json.h: a schedule as JSON (the spec that `regatta measure` sends to
// its workers), and the samples that come back as worker events.
#pragma once

#include <variant>

#include <nlohmann/json_fwd.hpp>

#include "regatta/base/core/json.h"
#include "regatta/runtime/measure/measurement_schedule.h"
#include "regatta/runtime/measure/summarize.h"

namespace regatta::measure {

nlohmann::json to_json(const MeasurementSchedule& schedule);

// `reader` keeps the errors: they mean that the sender has another version.
MeasurementSchedule read_measurement_schedule(const JsonReader& reader);

// {"event":"sample","task":3,"work":1.2e9,"busy_s":0.011}
nlohmann::json to_event(const DeviceSample& sample);
// {"event":"share","busy_s":1.5,"wall_s":10.0}
nlohmann::json to_event(const ShareSample& sample);
// {"event":"path","task":0,"latency_s":2e-5,"bandwidth_Bps":1.2e7}
nlohmann::json to_event(const PathSample& sample);

// One of the three from an event of `rank`; monostate for events of another kind.
using Sample = std::variant<std::monostate, DeviceSample, ShareSample, PathSample>;
Sample parse_event(Rank rank, const nlohmann::json& event);

}  // namespace regatta::measure
