// sharing/internal/client/timed_spans.h: launched work between two events, and what its completion
// teaches about the durations of kernels. The spans themselves are guarded by the gate's mutex;
// functions that ask the device must be called without it.
#pragma once

#include <cstdint>
#include <vector>

#include "regatta/base/core/mutex.h"
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
};

// Counts the work of `span` in its lane.
void add_to_lane(const TimedSpan& span, std::uint64_t now_ns);

// By the gate's worker: the device has reached the end of `span`. Learns the duration of the timed
// launch, counts the work as completed and releases the events.
void complete_span(const TimedSpan& span, StreamEvents& events, WorkInFlight& work, Mutex& mutex)
    REGATTA_EXCLUDES(mutex);

// Completes spans of `spans` that other streams have reached meanwhile: all of a stream whose last
// event is reached, otherwise one whose first event is. Querying an event may cost as much as a
// launch.
void complete_reached(std::vector<TimedSpan>& spans, StreamEvents& events, WorkInFlight& work,
                      Mutex& mutex) REGATTA_EXCLUDES(mutex);

}  // namespace regatta::sharing
