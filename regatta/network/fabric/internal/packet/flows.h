// fabric/internal/packet/flows.h: when each flow may start, and how much of it has not been sent or
// has not arrived.
#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <queue>
#include <utility>
#include <vector>

#include "regatta/network/fabric/flow_simulation.h"
#include "regatta/network/fabric/internal/followers.h"
#include "regatta/network/fabric/internal/packet/packet.h"
#include "regatta/network/fabric/internal/packet/recurrence.h"

namespace regatta::fabric::packet {

inline Picoseconds picoseconds(double seconds) {
  return std::llround(seconds * 1e12);
}
inline double seconds(Picoseconds time) {
  return static_cast<double>(time) * 1e-12;
}

class Flows {
 public:
  explicit Flows(const Traffic& traffic) : traffic_(traffic), followers_(traffic) {
    const std::size_t count = traffic.flows().size();
    times_.resize(count, {kNever, kNever, kNever});
    left_.resize(count);
    waits_for_.reserve(count);
    for (std::uint32_t flow = 0; flow < count; ++flow) {
      waits_for_.push_back(traffic.flows()[flow].waits_for);
      if (waits_for_[flow] == 0) due(flow, 0);
    }
  }

  std::uint64_t bytes(std::uint32_t flow) const {
    return static_cast<std::uint64_t>(traffic_.flows()[flow].bytes);
  }
  std::uint32_t pair(std::uint32_t flow) const { return traffic_.flows()[flow].path; }

  // When the next flow starts; kNever: none is due.
  Picoseconds next_start() const { return starts_.empty() ? kNever : starts_.top().at - leapt_; }
  // It is to be sent in so many parts and packets; none: it is there at once.
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
  // Whether it was the last one.
  bool packet_arrived(std::uint32_t flow, Picoseconds now) {
    if (--left_[flow].packets != 0) return false;
    arrived(flow, now);
    return true;
  }
  void sent(std::uint32_t flow, Picoseconds now) {
    times_[flow].sent = now + leapt_;
    note(flow, 1);
    tell(flow, After::kSent, now);
  }
  void arrived(std::uint32_t flow, Picoseconds now) {
    times_[flow].arrived = now + leapt_;
    end_ = std::max(end_, now + leapt_);
    ++arrived_;
    note(flow, 2);
    if (on_arrived_) on_arrived_(flow, times(flow));
    tell(flow, After::kArrived, now);
  }

  const Traffic& traffic() const { return traffic_; }

  // Called for each flow once it has arrived, in the order of that.
  void set_listener(std::function<void(std::uint32_t, const FlowTimes&)> on_arrived) {
    on_arrived_ = std::move(on_arrived);
  }
  // From now on what happens is noted, so that it can be repeated.
  void set_notes() { has_notes_ = true; }
  struct Mark {
    std::size_t notes = 0;
    std::uint32_t low = 0;   // all before it have arrived
    std::uint32_t high = 0;  // nothing has happened to any after it
    Picoseconds at = 0;
  };
  // False: too many are due to say so.
  bool print(Print& print, Picoseconds now) const;
  Mark mark(Picoseconds now) {
    while (low_ < times_.size() && times_[low_].arrived != kNever)
      ++low_;
    return {notes_.size(), low_, high_, now + leapt_};
  }
  // How often what happened between the marks comes again, with flows whose numbers are `shift`
  // higher each time.
  std::uint64_t repeats(const Mark& before, const Mark& now, std::uint32_t shift) const;
  void repeat(const Mark& before, const Mark& now, std::uint32_t shift, std::uint64_t times);
  void forget_notes() { notes_.clear(); }
  // So much passes while nothing starts or ends.
  void leap(Picoseconds time) { leapt_ += time; }
  void leap_packets(std::uint32_t flow, std::uint64_t packets) {
    left_[flow].packets -= static_cast<std::uint32_t>(packets);
  }
  Picoseconds leapt() const { return leapt_; }

  std::size_t not_arrived() const { return times_.size() - arrived_; }
  Picoseconds end() const { return end_; }
  FlowTimes times(std::uint32_t flow) const {
    const auto of = [](Picoseconds time) {
      return time == kNever ? std::numeric_limits<double>::infinity() : seconds(time);
    };
    return {of(times_[flow].start), of(times_[flow].sent), of(times_[flow].arrived)};
  }

  // Whether some flows can never start, whatever happens to the others: for how many each waits.
  std::vector<std::uint32_t> waits_without_end() const {
    std::vector<std::uint32_t> waits_for;
    std::vector<std::uint32_t> free;
    for (const Traffic::Flow& flow : traffic_.flows())
      waits_for.push_back(flow.waits_for);
    for (std::uint32_t flow = 0; flow < waits_for.size(); ++flow)
      if (waits_for[flow] == 0) free.push_back(flow);
    for (std::size_t i = 0; i < free.size(); ++i)
      followers_.for_each(free[i], [&](std::uint32_t next, After) {
        if (--waits_for[next] == 0) free.push_back(next);
      });
    if (free.size() == waits_for.size()) waits_for.clear();
    return waits_for;
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
    starts_.push({now + leapt_ + picoseconds(traffic_.flows()[flow].delay), flow});
  }
  void tell(std::uint32_t flow, After what, Picoseconds now) {
    followers_.for_each(flow, [&](std::uint32_t next, After after) {
      if (after != what) return;
      high_ = std::max(high_, next);
      if (--waits_for_[next] == 0) due(next, now);
    });
  }

  void note(std::uint32_t flow, std::uint32_t what) {
    if (has_notes_) notes_.push_back(std::uint64_t{flow} * 3 + what);
  }
  Picoseconds& time_of(std::uint32_t flow, std::uint64_t what) {
    Times& times = times_[flow];
    return what == 0 ? times.start : what == 1 ? times.sent : times.arrived;
  }

  const Traffic& traffic_;
  const Followers followers_;
  std::vector<Times> times_;
  std::vector<Left> left_;
  std::vector<std::uint32_t> waits_for_;
  std::priority_queue<Start> starts_;
  std::function<void(std::uint32_t, const FlowTimes&)> on_arrived_;  // may be empty
  bool has_notes_ = false;
  std::vector<std::uint64_t> notes_;  // 3 flow + what: started, sent, arrived
  std::uint32_t low_ = 0;
  std::uint32_t high_ = 0;
  Picoseconds end_ = 0;
  Picoseconds leapt_ = 0;  // how far the time of the flows is ahead of that of the packets
  std::size_t arrived_ = 0;
};

}  // namespace regatta::fabric::packet
