// fabric/internal/packet/flow_progress.h: when each flow may start, and how much of it is still to
// be sent and to arrive.
#pragma once

#include <algorithm>
#include <functional>
#include <limits>
#include <utility>
#include <vector>

#include "regatta/network/fabric/flow_simulation.h"
#include "regatta/network/fabric/internal/flow_dependents.h"
#include "regatta/network/fabric/internal/packet/flow_event_log.h"
#include "regatta/network/fabric/internal/packet/recurrence_detector.h"
#include "regatta/network/fabric/internal/packet/simulation_clock.h"
#include "regatta/network/fabric/internal/packet/start_queue.h"

namespace regatta::fabric::packet {

class FlowProgress {
 public:
  explicit FlowProgress(const FlowGraph& traffic) : traffic_(traffic), dependents_(traffic) {
    const std::size_t count = traffic.flows().size();
    times_.resize(count, {kNever, kNever, kNever});
    left_.resize(count);
    pending_dependencies_.reserve(count);
    for (std::uint32_t flow = 0; flow < count; ++flow) {
      pending_dependencies_.push_back(traffic.flows()[flow].pending_dependencies);
      if (pending_dependencies_[flow] == 0) due(flow, {});
    }
  }

  std::uint64_t bytes(std::uint32_t flow) const {
    return static_cast<std::uint64_t>(traffic_.flows()[flow].bytes);
  }
  std::uint32_t pair(std::uint32_t flow) const { return traffic_.flows()[flow].path; }

  // When the next flow starts; kNever: none is due.
  Picoseconds next_start(const SimulationClock& clock) const {
    return starts_.empty() ? kNever : starts_.top().at - clock.skipped;
  }
  // Starts the next flow. It is then expect()ed in parts and packets, or has sent() and arrived().
  std::uint32_t start() {
    const StartQueue::Start start = starts_.pop();
    times_[start.flow].start = start.at;
    high_ = std::max(high_, start.flow);
    log_.add(start.flow, FlowEvent::kStarted);
    return start.flow;
  }
  void expect(std::uint32_t flow, std::uint32_t parts, std::uint32_t packets) {
    left_[flow] = {.parts = parts, .packets = packets};
  }
  void part_sent(std::uint32_t flow, const SimulationClock& clock) {
    if (--left_[flow].parts == 0) sent(flow, clock);
  }
  // Returns whether it was the last packet of the flow.
  bool packet_arrived(std::uint32_t flow, const SimulationClock& clock) {
    if (--left_[flow].packets != 0) return false;
    arrived(flow, clock);
    return true;
  }
  void sent(std::uint32_t flow, const SimulationClock& clock) {
    times_[flow].sent = clock.flow_time();
    log_.add(flow, FlowEvent::kSent);
    release_dependents(flow, After::kSent, clock);
  }
  void arrived(std::uint32_t flow, const SimulationClock& clock) {
    times_[flow].arrived = clock.flow_time();
    end_ = std::max(end_, clock.flow_time());
    ++arrived_;
    log_.add(flow, FlowEvent::kArrived);
    if (on_arrived_) on_arrived_(flow, times(flow));
    release_dependents(flow, After::kArrived, clock);
  }

  const FlowGraph& traffic() const { return traffic_; }

  // Called for each flow once it has arrived, in that order.
  void set_listener(std::function<void(std::uint32_t, const FlowTimes&)> on_arrived) {
    on_arrived_ = std::move(on_arrived);
  }
  // Once it is enabled, events can be repeated.
  FlowEventLog& log() { return log_; }
  struct Snapshot {
    std::size_t events = 0;  // in the log
    std::uint32_t low = 0;   // all before it have arrived
    std::uint32_t high = 0;  // nothing has happened to any after it
    Picoseconds at = 0;
  };
  // False: too many flows are due.
  bool fingerprint(StateFingerprint& fingerprint, const SimulationClock& clock) const;
  Snapshot mark(const SimulationClock& clock) {
    while (low_ < times_.size() && times_[low_].arrived != kNever)
      ++low_;
    return {log_.size(), low_, high_, clock.flow_time()};
  }
  // How often the events between the snapshots repeat, each time with flow numbers `shift` higher.
  std::uint64_t repeats(const Snapshot& before, const Snapshot& now, std::uint32_t shift) const;
  // Returns the time to skip.
  Picoseconds repeat(const Snapshot& before, const Snapshot& now, std::uint32_t shift,
                     std::uint64_t times);
  void fast_forward_packets(std::uint32_t flow, std::uint64_t packets) {
    left_[flow].packets -= static_cast<std::uint32_t>(packets);
  }

  std::size_t not_arrived() const { return times_.size() - arrived_; }
  Picoseconds end() const { return end_; }
  FlowTimes times(std::uint32_t flow) const {
    const auto of = [](Picoseconds time) {
      return time == kNever ? std::numeric_limits<double>::infinity() : seconds(time);
    };
    return {of(times_[flow].start), of(times_[flow].sent), of(times_[flow].arrived)};
  }

 private:
  struct Times {
    Picoseconds start;
    Picoseconds sent;
    Picoseconds arrived;
  };
  struct Left {
    std::uint32_t parts = 0;    // to be sent
    std::uint32_t packets = 0;  // to arrive
  };

  void due(std::uint32_t flow, const SimulationClock& clock) {
    starts_.push({clock.flow_time() + picoseconds(traffic_.flows()[flow].delay), flow});
  }
  void release_dependents(std::uint32_t flow, After what, const SimulationClock& clock) {
    dependents_.for_each(flow, [&](std::uint32_t next, After after) {
      if (after != what) return;
      high_ = std::max(high_, next);
      if (--pending_dependencies_[next] == 0) due(next, clock);
    });
  }
  Picoseconds& time_of(std::uint32_t flow, FlowEvent event) {
    Times& times = times_[flow];
    return event == FlowEvent::kStarted ? times.start
           : event == FlowEvent::kSent  ? times.sent
                                        : times.arrived;
  }

  const FlowGraph& traffic_;
  const FlowDependents dependents_;
  std::vector<Times> times_;
  std::vector<Left> left_;
  std::vector<std::uint32_t> pending_dependencies_;
  StartQueue starts_;
  std::function<void(std::uint32_t, const FlowTimes&)> on_arrived_;  // may be empty
  FlowEventLog log_;
  std::uint32_t low_ = 0;
  std::uint32_t high_ = 0;
  Picoseconds end_ = 0;
  std::size_t arrived_ = 0;
};

}  // namespace regatta::fabric::packet
