// report/internal/trace_json.h: trace.json: prediction and measurement as one trace that Perfetto
// and chrome://tracing open. Source: "Trace Event Format" (Chromium), complete events ("ph": "X").
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "regatta/base/core/units.h"
#include "regatta/model/workload/timeline.h"

namespace regatta::report {

// A counter over time, as a track of its own ("ph": "C"). A value holds until the next one.
struct CounterTrack {
  struct Value {
    Seconds at;
    double value = 0;
  };
  std::string name;
  std::string unit;
  std::vector<Value> values;
};

// One timeline: a process of that name with a thread for each row; a span's rank is its row. One
// JSON object with "traceEvents", one event a line; times in microseconds with three decimals.
std::string trace_json_text(std::string_view process, const std::vector<std::string>& rows,
                            const workload::Timeline& timeline,
                            const std::vector<CounterTrack>& counters = {});

}  // namespace regatta::report
