// fabric/internal/packet/start_queue.h: the flows that only wait for their start time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <queue>
#include <utility>

#include "regatta/network/fabric/internal/packet/calendar_queue.h"

namespace regatta::fabric::packet {

// Flows that start at the same time leave in the order of their numbers.
class StartQueue {
 public:
  struct Start {
    Picoseconds at;  // by the clock of the flows
    std::uint32_t flow;
    bool operator<(const Start& other) const {
      return at != other.at ? at > other.at : flow > other.flow;
    }
  };

  bool empty() const { return starts_.empty(); }
  std::size_t size() const { return starts_.size(); }
  void push(Start start) { starts_.push(start); }
  const Start& top() const { return starts_.top(); }
  Start pop() {
    const Start start = starts_.top();
    starts_.pop();
    return start;
  }

  // Delays all starts by `time` and raises the numbers of their flows by `flows`.
  void shift(Picoseconds time, std::uint32_t flows) {
    std::priority_queue<Start> shifted;
    for (; !starts_.empty(); starts_.pop())
      shifted.push({starts_.top().at + time, starts_.top().flow + flows});
    starts_ = std::move(shifted);
  }

 private:
  std::priority_queue<Start> starts_;
};

}  // namespace regatta::fabric::packet
