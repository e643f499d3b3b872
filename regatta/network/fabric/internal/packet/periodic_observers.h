// fabric/internal/packet/periodic_observers.h: the recorder of the histories and the PFC watchdog,
// which sample links in intervals of the clock of the flows.
#pragma once

#include <algorithm>
#include <vector>

#include "regatta/network/fabric/internal/packet/link_queues.h"
#include "regatta/network/fabric/internal/packet/outage_schedule.h"
#include "regatta/network/fabric/internal/packet/pfc_storm_monitor.h"
#include "regatta/network/fabric/internal/packet/recorder.h"
#include "regatta/network/fabric/internal/packet/simulation_clock.h"

namespace regatta::fabric::packet {

class PeriodicObservers {
 public:
  PeriodicObservers(const PacketNetwork& network, const PacketOptions& options,
                    LinkQueues& link_queues, const OutageSchedule& outages, SimulationClock& clock)
      : link_queues_(link_queues),
        outages_(outages),
        clock_(clock),
        recorder_(options.history, options.queues),
        storms_(network, options) {}

  // When the next is due, by the clock of the packets; kNever: none is.
  Picoseconds next_at() const {
    const Picoseconds record_at = is_resting_ ? kNever : recorder_.next_at();
    const Picoseconds at = std::min(record_at, storms_.next_at());
    return at == kNever ? kNever : clock_.packet_time(at);
  }
  // Runs those that are due. is_idle: nothing happens to the links now, so that the recorder rests
  // until wake().
  void run_due(bool is_idle) {
    if (clock_.flow_time() >= recorder_.next_at()) {
      record();
      is_resting_ = is_idle;
    }
    if (clock_.flow_time() >= storms_.next_at()) poll();
  }
  // Records up to now, if there are histories.
  void record() {
    if (recorder_.is_on()) recorder_.sample(link_queues_, clock_.now, clock_.flow_time());
  }
  // Time is skipped in between.
  void begin_skip() {
    record();
    storms_.begin_skip(link_queues_, clock_.now, clock_.flow_time(),
                       [this](std::uint32_t link) { return outages_.is_up(link); });
  }
  void end_skip() {
    storms_.end_skip(link_queues_, clock_.now, clock_.flow_time());
    record();
  }
  bool is_resting() const { return is_resting_; }
  void wake() {
    is_resting_ = false;
    record();
  }

  // Nothing happens any more, so paused links stay paused: polls until every storm is detected.
  void poll_until_quiescent() {
    if (storms_.next_at() == kNever) return;
    const Picoseconds end = clock_.now + storms_.most();
    while (clock_.now < end && !link_queues_.pauses().is_calm()) {
      clock_.now = clock_.packet_time(storms_.next_at());
      poll();
    }
  }
  std::vector<PfcStorm> storms() const { return storms_.storms(link_queues_); }

 private:
  void poll() {
    storms_.poll(link_queues_, clock_.now, clock_.flow_time(),
                 [this](std::uint32_t link) { return outages_.is_up(link); });
  }

  LinkQueues& link_queues_;
  const OutageSchedule& outages_;
  SimulationClock& clock_;
  Recorder recorder_;
  bool is_resting_ = false;  // the recorder
  PfcStormMonitor storms_;
};

}  // namespace regatta::fabric::packet
