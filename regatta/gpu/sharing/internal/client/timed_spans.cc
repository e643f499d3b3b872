#include "regatta/gpu/sharing/internal/client/timed_spans.h"

#include <algorithm>

#include "regatta/base/os/clock.h"

namespace regatta::sharing {
namespace {

// Time that the device worked on the span. A timed launch counts as long as it took; the others as
// long as they were expected to take.
std::uint64_t used_by(const TimedSpan& span, const SpanCompletion& completion) {
  StreamEvents& events = completion.events;
  if (span.begin == nullptr) return span.cost_ns;
  const auto took = events.between_ns(span.begin, span.end);
  events.release(span.begin);
  if (!took) return span.cost_ns;
  const bool may_have_waited = span.may_have_waited || completion.is_beside_others;
  KernelDurations::learn(*span.entry, *took, may_have_waited);
  const std::uint64_t used = may_have_waited ? std::min(*took, span.entry->cost_ns.load()) : *took;
  return span.cost_ns - std::min(span.cost_ns, span.timed_cost_ns) + used;
}

}  // namespace

void add_to_lane(TimedSpan& span, std::uint64_t now_ns) {
  span.launched_ns = now_ns;
  StreamLane& lane = *span.lane;
  lane.recorded_ns += span.cost_ns;
  lane.ends_ns = std::max(lane.ends_ns, now_ns) + span.cost_ns;
}

SpanCompletion::Reached SpanCompletion::reached(StreamEvents::Event end, std::uint64_t now_ns) {
  const auto since = last == nullptr ? std::nullopt : events.between_ns(last, end);
  if (last != nullptr) events.release(last);
  last = end;
  return {clock.reached(since, now_ns), since.value_or(0)};
}

void complete_span(const TimedSpan& span, SpanCompletion& completion) {
  const std::uint64_t used = used_by(span, completion);
  const std::uint64_t now = os::monotonic_ns();
  const auto [ended, since_last] = completion.reached(span.end, now);
  completion.work.complete({.cost_ns = span.cost_ns,
                            .used_ns = used,
                            .launched_ns = span.launched_ns,
                            .ended_ns = ended,
                            .since_last_ns = since_last},
                           now);
  const MutexLock lock(completion.mutex);
  span.lane->recorded_ns -= span.cost_ns;
  span.lane->ends_ns = os::monotonic_ns() + span.lane->recorded_ns;
}

void complete_reached(std::vector<TimedSpan>& spans, SpanCompletion& completion) {
  std::vector<void*> streams;
  for (const TimedSpan& span : spans) {
    if (std::ranges::find(streams, span.stream) == streams.end()) streams.push_back(span.stream);
  }
  for (void* const stream : streams) {
    const auto is_of_stream = [stream](const TimedSpan& span) { return span.stream == stream; };
    const auto first = std::ranges::find_if(spans, is_of_stream);
    const auto last = std::find_if(spans.rbegin(), spans.rend(), is_of_stream);
    if (completion.events.is_reached(last->end)) {
      std::erase_if(spans, [&](const TimedSpan& span) {
        if (is_of_stream(span)) complete_span(span, completion);
        return is_of_stream(span);
      });
    } else if (&*first != &*last && completion.events.is_reached(first->end)) {
      complete_span(*first, completion);
      spans.erase(first);
    }
  }
}

}  // namespace regatta::sharing
