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
    if (link_queues.pauses().is_calm() && open_ == 0) return;
    std::vector<std::uint32_t> begun;
    since_ = {seconds(time)};
    over_ = {};
    for (const std::uint32_t link : watched_) {
      PfcSample sample = link_queues.pfc_sample(link, now);
      sample.at = {seconds(time)};
      sample.is_up = is_up(link);
      const auto alarm = watch_.add({.link = link}, sample);
      if (!alarm) continue;
      if (!alarm->is_storm) {
        over_ = std::max(over_, std::min(alarm->at, alarm->since + calm_));
        continue;
      }
      begun.push_back(link);
      since_ = std::min(since_, alarm->since);
    }
    follow(link_queues, begun, {seconds(time)});
  }

  // All storms so far; is_held is set for open ones that still pause links.
  std::vector<PfcStorm> storms(const LinkQueues& link_queues) const;

 private:
  void follow(const LinkQueues& link_queues, const std::vector<std::uint32_t>& begun, Seconds time);
  std::vector<std::uint32_t> nearest_of(const PauseTree& tree) const;
  void begin(PauseTree tree, Seconds time);

  const PacketNetwork& network_;
  Picoseconds period_ = 1;
  Picoseconds most_ = 0;
  Picoseconds next_ = kNever;
  PfcWatchdog watch_;
  std::vector<std::uint32_t> watched_;  // links that switches send by
  std::vector<PfcStorm> storms_;
  std::vector<std::vector<std::uint32_t>> nearest_;  // per storm: its links whose end tells it
  std::size_t open_ = 0;                             // storms
  Seconds since_;                                    // the earliest of the alarms of a poll
  Seconds over_;  // the latest of those that end: what is skipped was polled as it would be
  Seconds calm_;  // from the last pause to the poll that tells the end
};

}  // namespace regatta::fabric::packet
