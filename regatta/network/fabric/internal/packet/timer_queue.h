// fabric/internal/packet/timer_queue.h: rare events, several of which may be due at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <queue>
#include <vector>

#include "regatta/network/fabric/internal/packet/calendar_queue.h"

namespace regatta::fabric::packet {

enum class TimerKind : std::uint8_t {
  kWake,        // the NIC of link `of` may send again
  kCnp,         // connection `of` receives a CNP
  kRetransmit,  // the packet at place `of` of LostPackets is sent again
};

// Timers of the same time leave in the order of entry.
class TimerQueue {
 public:
  struct Timer {
    Picoseconds at;
    std::uint64_t order;
    TimerKind what;
    std::uint32_t of;
    bool operator<(const Timer& other) const {
      return at != other.at ? at > other.at : order > other.order;
    }
  };

  explicit TimerQueue(std::size_t links) : wakes_(links, 0) {}

  bool empty() const { return timers_.empty(); }
  Picoseconds next_at() const { return timers_.empty() ? kNever : timers_.top().at; }
  void push(Picoseconds at, TimerKind what, std::uint32_t of) {
    timers_.push({at, order_++, what, of});
  }
  // Pushes a wake of the NIC of `link`, unless one that is not later is queued.
  void push_wake(Picoseconds at, std::uint32_t link, Picoseconds now) {
    if (wakes_[link] > now && wakes_[link] <= at) return;
    wakes_[link] = at;
    push(at, TimerKind::kWake, link);
  }
  Timer pop() {
    const Timer timer = timers_.top();
    timers_.pop();
    return timer;
  }

 private:
  std::priority_queue<Timer> timers_;
  std::uint64_t order_ = 0;
  std::vector<Picoseconds> wakes_;  // per link: the earliest that is queued
};

}  // namespace regatta::fabric::packet
