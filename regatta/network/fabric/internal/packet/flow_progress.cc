#include "regatta/network/fabric/internal/packet/flow_progress.h"

#include <algorithm>

namespace regatta::fabric::packet {

bool FlowProgress::fingerprint(StateFingerprint& fingerprint, const SimulationClock& clock) const {
  constexpr std::size_t kMostDue = 4096;
  if (starts_.size() > kMostDue) return false;
  for (StartQueue starts = starts_; !starts.empty();) {
    const StartQueue::Start start = starts.pop();
    fingerprint.add(static_cast<std::uint64_t>(start.at - clock.flow_time()));
    fingerprint.add_flow(start.flow);
  }
  fingerprint.add_flow(low_);
  fingerprint.add_flow(high_);
  for (std::uint32_t flow = low_; flow <= high_; ++flow) {
    const Times& times = times_[flow];
    fingerprint.add(std::uint64_t{left_[flow].parts} << 32U | left_[flow].packets);
    fingerprint.add(std::uint64_t{pending_dependencies_[flow]} << 3U |
                    std::uint64_t{times.start != kNever} << 2U |
                    std::uint64_t{times.sent != kNever} << 1U |
                    std::uint64_t{times.arrived != kNever});
  }
  return true;
}

std::uint64_t FlowProgress::repeats(const Snapshot& before, const Snapshot& now,
                                    std::uint32_t shift) const {
  const auto is_alike = [&](std::uint32_t flow) {
    const FlowGraph::Flow& one = traffic_.flows()[flow];
    const FlowGraph::Flow& other = traffic_.flows()[flow + shift];
    return one.path == other.path && one.bytes == other.bytes && one.delay == other.delay &&
           one.pending_dependencies == other.pending_dependencies &&
           dependents_.is_alike(flow, shift);
  };
  std::uint64_t alike = before.low;
  while (alike + shift < times_.size() && is_alike(static_cast<std::uint32_t>(alike)))
    ++alike;
  // Time k reaches up to now.high + k shift, which is like what stands `shift` before it.
  return alike <= now.high ? 0 : (alike - now.high - 1) / shift + 1;
}

Picoseconds FlowProgress::repeat(const Snapshot& before, const Snapshot& now, std::uint32_t shift,
                                 std::uint64_t times) {
  const Picoseconds period = now.at - before.at;
  log_.for_each(before.events, now.events, [&](std::uint32_t flow, FlowEvent event) {
    Picoseconds at = time_of(flow, event);
    for (std::uint64_t k = 0; k < times; ++k)
      time_of(flow += shift, event) = at += period;
    if (event != FlowEvent::kArrived) return;
    arrived_ += times;
    end_ = std::max(end_, at);
  });
  for (std::uint64_t k = 1; on_arrived_ && k <= times; ++k)
    log_.for_each(before.events, now.events, [&](std::uint32_t first, FlowEvent event) {
      const auto flow = static_cast<std::uint32_t>(first + k * shift);
      if (event == FlowEvent::kArrived) on_arrived_(flow, this->times(flow));
    });
  const Picoseconds time = static_cast<Picoseconds>(times) * period;
  const auto all = static_cast<std::uint32_t>(times * shift);
  for (std::uint32_t flow = high_ + 1; flow-- > low_;) {
    left_[flow + all] = left_[flow];
    pending_dependencies_[flow + all] = pending_dependencies_[flow];
  }
  starts_.shift(time, all);
  low_ += all;
  high_ += all;
  return time;
}

}  // namespace regatta::fabric::packet
