// fabric/internal/packet/flow_progress.h: when each flow may start, and how much of it is still to
// be sent and to arrive.
#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <queue>
#include <utility>
#include <vector>

#include "regatta/network/fabric/flow_simulation.h"
#include "regatta/network/fabric/internal/flow_dependents.h"
#include "regatta/network/fabric/internal/packet/packet.h"
#include "regatta/network/fabric/internal/packet/recurrence_detector.h"

namespace regatta::fabric::packet {

inline Picoseconds picoseconds(double seconds) {
  return std::llround(seconds * 1e12);
}
inline double seconds(Picoseconds time) {
  return static_cast<double>(time) * 1e-12;
}

class FlowProgress {
 public:
  explicit FlowProgress(const FlowGraph& traffic) : traffic_(traffic), dependents_(traffic) {
    const std::size_t count = traffic.flows().size();
    times_.resize(count, {kNever, kNever, kNever});
    left_.resize(count);
    pending_dependencies_.reserve(count);
    for (std::uint32_t flow = 0; flow < count; ++flow) {
      pending_dependencies_.push_back(traffic.flows()[flow].pending_dependencies);
      if (pending_dependencies_[flow] == 0) due(flow, 0);
    }
  }

  std::uint64_t bytes(std::uint32_t flow) const {
    return static_cast<std::uint64_t>(traffic_.flows()[flow].bytes);
  }
  std::uint32_t pair(std::uint32_t flow) const { return traffic_.flows()[flow].path; }

  // When the next flow starts; kNever: none is due.
  Picoseconds next_start() const { return starts_.empty() ? kNever : starts_.top().at - skipped_; }
  // Starts the next flow. It is then expect()ed in parts and packets, or has sent() and arrived().
  std::uint32_t start() {
    const Start start = starts_.top();
    starts_.pop();
    times_[start.flow].start = start.at;
    high_ = std::max(high_, start.flow);
    note(start.flow, 0);
    return start.flow;
  }
  void expect(std::uint32_t flow, std::uint32_t parts, std::uint32_t packets) {
    left_[flow] = {.parts = parts, .packets = packets};
  }
  void part_sent(std::uint32_t flow, Picoseconds now) {
    if (--left_[flow].parts == 0) sent(flow, now);
  }
  // Returns whether it was the last packet of the flow.
  bool packet_arrived(std::uint32_t flow, Picoseconds now) {
    if (--left_[flow].packets != 0) return false;
    arrived(flow, now);
    return true;
  }
  void sent(std::uint32_t flow, Picoseconds now) {
    times_[flow].sent = now + skipped_;
    note(flow, 1);
    tell(flow, After::kSent, now);
  }
  void arrived(std::uint32_t flow, Picoseconds now) {
    times_[flow].arrived = now + skipped_;
    end_ = std::max(end_, now + skipped_);
    ++arrived_;
    note(flow, 2);
    if (on_arrived_) on_arrived_(flow, times(flow));
    tell(flow, After::kArrived, now);
  }

  const FlowGraph& traffic() const { return traffic_; }

  // Called for each flow once it has arrived, in that order.
  void set_listener(std::function<void(std::uint32_t, const FlowTimes&)> on_arrived) {
    on_arrived_ = std::move(on_arrived);
  }
  // Records events from now on, so that they can be repeated.
  void set_notes() { has_notes_ = true; }
  struct Snapshot {
    std::size_t notes = 0;
    std::uint32_t low = 0;   // all before it have arrived
    std::uint32_t high = 0;  // nothing has happened to any after it
    Picoseconds at = 0;
  };
  // False: too many flows are due.
  bool fingerprint(StateFingerprint& fingerprint, Picoseconds now) const;
  Snapshot mark(Picoseconds now) {
    while (low_ < times_.size() && times_[low_].arrived != kNever)
      ++low_;
    return {notes_.size(), low_, high_, now + skipped_};
  }
  // How often the events between the snapshots repeat, each time with flow numbers `shift` higher.
  std::uint64_t repeats(const Snapshot& before, const Snapshot& now, std::uint32_t shift) const;
  void repeat(const Snapshot& before, const Snapshot& now, std::uint32_t shift,
              std::uint64_t times);
  void forget_notes() { notes_.clear(); }
  // Skips so much time, in which no flow starts or ends.
  void fast_forward(Picoseconds time) { skipped_ += time; }
  void fast_forward_packets(std::uint32_t flow, std::uint64_t packets) {
    left_[flow].packets -= static_cast<std::uint32_t>(packets);
  }
  Picoseconds skipped() const { return skipped_; }

  std::size_t not_arrived() const { return times_.size() - arrived_; }
  Picoseconds end() const { return end_; }
  FlowTimes times(std::uint32_t flow) const {
    const auto of = [](Picoseconds time) {
      return time == kNever ? std::numeric_limits<double>::infinity() : seconds(time);
    };
    return {of(times_[flow].start), of(times_[flow].sent), of(times_[flow].arrived)};
  }

  // Where flows can never start: for how many flows each waits. Empty: all can start.
  std::vector<std::uint32_t> waits_without_end() const {
    std::vector<std::uint32_t> pending_dependencies;
    std::vector<std::uint32_t> free;
    for (const FlowGraph::Flow& flow : traffic_.flows())
      pending_dependencies.push_back(flow.pending_dependencies);
    for (std::uint32_t flow = 0; flow < pending_dependencies.size(); ++flow)
      if (pending_dependencies[flow] == 0) free.push_back(flow);
    for (std::size_t i = 0; i < free.size(); ++i)
      dependents_.for_each(free[i], [&](std::uint32_t next, After) {
        if (--pending_dependencies[next] == 0) free.push_back(next);
      });
    if (free.size() == pending_dependencies.size()) pending_dependencies.clear();
    return pending_dependencies;
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
  struct Start {
    Picoseconds at;
    std::uint32_t flow;
    bool operator<(const Start& other) const {
      return at != other.at ? at > other.at : flow > other.flow;
    }
  };

  void due(std::uint32_t flow, Picoseconds now) {
    starts_.push({now + skipped_ + picoseconds(traffic_.flows()[flow].delay), flow});
  }
  void tell(std::uint32_t flow, After what, Picoseconds now) {
    dependents_.for_each(flow, [&](std::uint32_t next, After after) {
      if (after != what) return;
      high_ = std::max(high_, next);
      if (--pending_dependencies_[next] == 0) due(next, now);
    });
  }

  void note(std::uint32_t flow, std::uint32_t what) {
    if (has_notes_) notes_.push_back(std::uint64_t{flow} * 3 + what);
  }
  Picoseconds& time_of(std::uint32_t flow, std::uint64_t what) {
    Times& times = times_[flow];
    return what == 0 ? times.start : what == 1 ? times.sent : times.arrived;
  }

  const FlowGraph& traffic_;
  const FlowDependents dependents_;
  std::vector<Times> times_;
  std::vector<Left> left_;
  std::vector<std::uint32_t> pending_dependencies_;
  std::priority_queue<Start> starts_;
  std::function<void(std::uint32_t, const FlowTimes&)> on_arrived_;  // may be empty
  bool has_notes_ = false;
  std::vector<std::uint64_t> notes_;  // 3 flow + what: started, sent, arrived
  std::uint32_t low_ = 0;
  std::uint32_t high_ = 0;
  Picoseconds end_ = 0;
  Picoseconds skipped_ = 0;  // how far the time of the flows is ahead of that of the packets
  std::size_t arrived_ = 0;
};

}  // namespace regatta::fabric::packet
