#include "regatta/app/report/internal/trace_json.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "regatta/app/report/run_result.h"
#include "regatta/model/topo/cluster.h"
#include "regatta/model/workload/timeline.h"

namespace regatta::report {
namespace {

constexpr int kPredictedProcess = 1;
constexpr int kMeasuredProcess = 2;

std::string quoted(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

// Two threads a rank: 2 rank + 1 computes, 2 rank + 2 communicates in the background.
int thread_of(const workload::Span& span) {
  return 2 * span.rank.value + (span.background ? 2 : 1);
}

class Events {
 public:
  void metadata(std::string_view what, int process, int thread, std::string_view arguments) {
    append(fmt::format(R"({{"ph":"M","name":"{}","pid":{},"tid":{},"args":{{{}}}}})", what, process,
                       thread, arguments));
  }

  void span(const workload::Span& span, int process, Seconds origin) {
    std::string arguments = fmt::format("\"step\":{}", span.step);
    if (span.micro_batch >= 0) arguments += fmt::format(",\"micro_batch\":{}", span.micro_batch);
    if (span.layer >= 0) arguments += fmt::format(",\"layer\":{}", span.layer);
    append(fmt::format(
        R"({{"ph":"X","name":"{}","cat":"{}","pid":{},"tid":{},"ts":{:.3f},"dur":{:.3f},"args":{{{}}}}})",
        name_of(span), workload::to_string(span.phase), process, thread_of(span),
        (span.start - origin).value * 1e6, span.duration.value * 1e6, arguments));
  }

  void counter(const CounterTrack& counter, int process) {
    for (const CounterTrack::Value& value : counter.values) {
      append(fmt::format(R"({{"ph":"C","name":{},"pid":{},"ts":{:.3f},"args":{{{}:{:.0f}}}}})",
                         quoted(counter.name), process, value.at.value * 1e6, quoted(counter.unit),
                         value.value));
    }
  }

  std::string finish() && {
    return "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n" + text_ + "\n]}\n";
  }

 private:
  static std::string name_of(const workload::Span& span) {
    std::string name(workload::to_string(span.phase));
    if (span.micro_batch >= 0) name += fmt::format(" mb{}", span.micro_batch);
    if (span.layer >= 0) name += fmt::format(" layer {}", span.layer);
    return name;
  }

  void append(std::string_view event) {
    if (!text_.empty()) text_ += ",\n";
    text_ += event;
  }

  std::string text_;
};

void name_process(Events& events, int process, const std::string& name) {
  events.metadata("process_name", process, 0, "\"name\":" + quoted(name));
  events.metadata("process_sort_index", process, 0, fmt::format("\"sort_index\":{}", process));
}

void name_thread(Events& events, int process, int thread, const std::string& name) {
  events.metadata("thread_name", process, thread, "\"name\":" + quoted(name));
  events.metadata("thread_sort_index", process, thread, fmt::format("\"sort_index\":{}", thread));
}

void name_threads(Events& events, int process, std::string_view name, const RunResult& result) {
  name_process(events, process, std::string(name));
  const plan::Placement& placement = result.main.plan.placement;
  for (std::size_t rank = 0; rank < placement.size(); ++rank) {
    const std::string label =
        fmt::format("rank {} ({})", rank, topo::to_string(result.cluster, placement[rank]));
    const int thread = 2 * static_cast<int>(rank) + 1;
    name_thread(events, process, thread, label);
    name_thread(events, process, thread + 1, label + " background");
  }
}

Seconds first_start(const workload::Timeline& timeline) {
  Seconds first{std::numeric_limits<double>::infinity()};
  for (const workload::Span& span : timeline)
    first = std::min(first, span.start);
  return timeline.empty() ? Seconds{0} : first;
}

}  // namespace

std::string trace_json_text(const RunResult& result) {
  Events events;
  name_threads(events, kPredictedProcess, "predicted", result);
  name_threads(events, kMeasuredProcess, "measured", result);
  for (const workload::Span& span : result.main.plan.prediction.timeline)
    events.span(span, kPredictedProcess, {0});
  const Seconds origin = first_start(result.main.measured.timeline);
  for (const workload::Span& span : result.main.measured.timeline)
    events.span(span, kMeasuredProcess, origin);
  return std::move(events).finish();
}

std::string trace_json_text(std::string_view process, const std::vector<std::string>& rows,
                            const workload::Timeline& timeline,
                            const std::vector<CounterTrack>& counters) {
  Events events;
  name_process(events, kPredictedProcess, std::string(process));
  for (std::size_t row = 0; row < rows.size(); ++row)
    name_thread(events, kPredictedProcess, 2 * static_cast<int>(row) + 1, rows[row]);
  for (const workload::Span& span : timeline)
    events.span(span, kPredictedProcess, {0});
  for (const CounterTrack& counter : counters)
    events.counter(counter, kPredictedProcess);
  return std::move(events).finish();
}

}  // namespace regatta::report
