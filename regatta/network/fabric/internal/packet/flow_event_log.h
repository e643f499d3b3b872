// fabric/internal/packet/flow_event_log.h: the starts and ends of flows in the order in which they
// happened, so that they can be repeated.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace regatta::fabric::packet {

enum class FlowEvent : std::uint8_t { kStarted, kSent, kArrived };

class FlowEventLog {
 public:
  // Events are recorded from now on.
  void enable() { is_on_ = true; }
  void add(std::uint32_t flow, FlowEvent event) {
    if (is_on_) events_.push_back(std::uint64_t{flow} * kKinds + static_cast<std::uint64_t>(event));
  }
  std::size_t size() const { return events_.size(); }
  void clear() { events_.clear(); }

  // Calls use(flow, event) for the events with indices in [first, last).
  template <typename Use>
  void for_each(std::size_t first, std::size_t last, Use&& use) const {
    for (std::size_t i = first; i < last; ++i)
      use(static_cast<std::uint32_t>(events_[i] / kKinds),
          static_cast<FlowEvent>(events_[i] % kKinds));
  }

 private:
  static constexpr std::uint64_t kKinds = 3;
  bool is_on_ = false;
  std::vector<std::uint64_t> events_;  // kKinds flow + event
};

}  // namespace regatta::fabric::packet
