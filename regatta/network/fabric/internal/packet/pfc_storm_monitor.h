// fabric/internal/packet/pfc_storm_monitor.h: the PFC watchdog on the queues of the switches of a
// simulation.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "regatta/network/fabric/internal/packet/link_queues.h"
#include "regatta/network/fabric/internal/packet/simulation_clock.h"
#include "regatta/network/fabric/internal/pfc_watchdog.h"
#include "regatta/network/fabric/packet_simulation.h"

namespace regatta::fabric::packet {

class PfcStormMonitor {
 public:
  PfcStormMonitor(const PacketNetwork& network, const PacketOptions& options);

  // When to poll, by the clock of the flows; kNever: it is off.
  Picoseconds next_at() const { return next_; }
  // The time in which every storm is detected.
  Picoseconds most() const { return most_; }
  // `now`: the clock of the packets; `time`: the clock of the flows; is_up(link): it is not dead.
  template <typename IsUp>
  void poll(const LinkQueues& link_queues, Picoseconds now, Picoseconds time, IsUp&& is_up) {
    next_ = (time / period_ + 1) * period_;
    if (is_at_rest(link_queues)) return;
    take_samples(link_queues, time, [&](std::uint32_t link) {
      PfcSample sample = link_queues.pfc_sample(link, now);
      sample.is_up = is_up(link);
      return sample;
    });
  }
  // Time is skipped from `time` on, by the clock of the flows, until end_skip() says how far: what
  // the polls meanwhile would see lies evenly between the two.
  template <typename IsUp>
  void begin_skip(const LinkQueues& link_queues, Picoseconds now, Picoseconds time, IsUp&& is_up) {
    before_skip_.clear();
    skipped_from_ = time;
    if (next_ == kNever || is_at_rest(link_queues)) return;
    for (const std::uint32_t link : watched_) {
      before_skip_.push_back(link_queues.pfc_sample(link, now));
      before_skip_.back().is_up = is_up(link);
    }
  }
  void end_skip(const LinkQueues& link_queues, Picoseconds now, Picoseconds time);

  // All storms so far; is_held is set for open ones that still pause links.
  std::vector<PfcStorm> storms(const LinkQueues& link_queues) const;

 private:
  bool is_at_rest(const LinkQueues& link_queues) const {
    return link_queues.pauses().is_calm() && open_ == 0;
  }
  // Adds sample(link) of each watched link to the watchdog, as polled at `time`.
  template <typename Sample>
  void take_samples(const LinkQueues& link_queues, Picoseconds time, Sample&& sample_of) {
    std::vector<std::uint32_t> begun;
    since_ = {seconds(time)};
    for (const std::uint32_t link : watched_) {
      PfcSample sample = sample_of(link);
      sample.at = {seconds(time)};
      const auto alarm = watch_.add({.link = link}, sample);
      if (!alarm || !alarm->is_storm) continue;
      begun.push_back(link);
      since_ = std::min(since_, alarm->since);
    }
    follow(link_queues, begun, {seconds(time)});
  }
  void follow(const LinkQueues& link_queues, const std::vector<std::uint32_t>& begun, Seconds time);
  std::vector<std::uint32_t> nearest_of(const PauseTree& tree) const;
  void begin(PauseTree tree, Seconds time);

  const PacketNetwork& network_;
  Picoseconds period_ = 1;
  Picoseconds most_ = 0;
  Picoseconds settled_ = 0;  // after so much time in which links do the same, polls tell no more
  Picoseconds next_ = kNever;
  PfcWatchdog watch_;
  std::vector<std::uint32_t> watched_;  // links that switches send by
  std::vector<PfcStorm> storms_;
  std::vector<std::vector<std::uint32_t>> nearest_;  // per storm: its links whose end tells it
  std::size_t open_ = 0;                             // storms
  Seconds since_;                                    // the earliest of the alarms of a poll
  std::vector<PfcSample> before_skip_;               // per watched link; empty: nothing to watch
  Picoseconds skipped_from_ = 0;
};

}  // namespace regatta::fabric::packet
