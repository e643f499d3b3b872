// sharing/internal/client/timed_spans.h: launched work between two events, and what its completion
// teaches about the durations of kernels. The spans themselves are guarded by the gate's mutex;
// functions that ask the device must be called without it.
#pragma once

#include <cstdint>
#include <vector>

#include "regatta/base/core/mutex.h"
#include "regatta/gpu/sharing/internal/client/device_clock.h"
#include "regatta/gpu/sharing/internal/client/kernel_durations.h"
#include "regatta/gpu/sharing/internal/client/stream_events.h"
#include "regatta/gpu/sharing/internal/client/stream_lanes.h"
#include "regatta/gpu/sharing/internal/client/work_in_flight.h"

namespace regatta::sharing {

// Ends with an event; begins with one when a launch is timed.
struct TimedSpan {
  StreamEvents::Event begin = nullptr;
  StreamEvents::Event end = nullptr;
  std::uint64_t cost_ns = 0;
  KernelDurations::Entry* entry = nullptr;
  std::uint64_t timed_cost_ns = 0;  // of the launch between begin and end
  bool may_have_waited = false;     // behind the work of another tenant
  StreamLane* lane = nullptr;
  void* stream = nullptr;
  std::uint64_t launched_ns = 0;  // when all of it was
};

// Counts the work of `span`, launched until now, in its lane.
void add_to_lane(TimedSpan& span, std::uint64_t now_ns);

// The completion of spans works on this, by the gate's worker alone.
struct SpanCompletion {
  StreamEvents& events;
  WorkInFlight& work;
  Mutex& mutex;  // of the gate
  DeviceClock clock{};
  StreamEvents::Event last = nullptr;  // the end of the last completed span
  bool is_beside_others = false;       // the turn is over: another tenant may work at once

  struct Reached {
    std::uint64_t at_ns = 0;          // by the host's clock
    std::uint64_t since_last_ns = 0;  // by the device's; 0: unknown
  };
  // Takes over `end`, which the device has reached; when it did, as seen now.
  Reached reached(StreamEvents::Event end, std::uint64_t now_ns);
};

// By the gate's worker: the device has reached the end of `span`. Learns the duration of the timed
// launch, counts the work as completed and releases the events.
void complete_span(const TimedSpan& span, SpanCompletion& completion)
    REGATTA_EXCLUDES(completion.mutex);

// Completes spans of `spans` that other streams have reached meanwhile: all of a stream whose last
// event is reached, otherwise one whose first event is. Querying an event may cost as much as a
// launch.
void complete_reached(std::vector<TimedSpan>& spans, SpanCompletion& completion)
    REGATTA_EXCLUDES(completion.mutex);

}  // namespace regatta::sharing
