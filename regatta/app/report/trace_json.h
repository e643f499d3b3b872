// report/trace_json.h: trace.json: prediction and measurement as one trace that Perfetto and
// chrome://tracing open. Source: "Trace Event Format" (Chromium), complete events ("ph": "X").
//
// Process 1 is the prediction (one step, from time 0), process 2 the measurement (the traced steps,
// from the start of the first). Each rank has two threads: its compute thread and, below it, its
// communication in the background.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "regatta/app/report/run_result.h"
#include "regatta/base/core/units.h"
#include "regatta/model/workload/timeline.h"

namespace regatta::report {

// One JSON object with "traceEvents", one event a line; times in microseconds with three decimals.
std::string trace_json_text(const RunResult& result);

// A value over time: a track of its own ("ph": "C"). A value holds until the next.
struct CounterTrack {
  struct Value {
    Seconds at;
    double value = 0;
  };
  std::string name;
  std::string unit;
  std::vector<Value> values;
};

// The same for one timeline alone: a process of that name, a thread for each row; a span's rank is
// its row.
std::string trace_json_text(std::string_view process, const std::vector<std::string>& rows,
                            const workload::Timeline& timeline,
                            const std::vector<CounterTrack>& counters = {});

}  // namespace regatta::report
