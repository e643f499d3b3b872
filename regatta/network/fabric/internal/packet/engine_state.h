// fabric/internal/packet/engine_state.h: the state of a packet simulation that its events and its
// fast-forwards change.
#pragma once

#include <algorithm>
#include <cstdint>

#include "regatta/network/fabric/internal/packet/calendar_queue.h"
#include "regatta/network/fabric/internal/packet/flow_progress.h"
#include "regatta/network/fabric/internal/packet/link_queues.h"
#include "regatta/network/fabric/internal/packet/outage_schedule.h"
#include "regatta/network/fabric/internal/packet/packet.h"
#include "regatta/network/fabric/internal/packet/periodic_observers.h"
#include "regatta/network/fabric/internal/packet/random.h"
#include "regatta/network/fabric/internal/packet/senders.h"
#include "regatta/network/fabric/internal/packet/simulation_clock.h"
#include "regatta/network/fabric/internal/packet/timer_queue.h"
#include "regatta/network/fabric/packet_simulation.h"

namespace regatta::fabric::packet {

struct EngineState {
  EngineState(PacketNetwork of, const PacketSetup& setup, const FlowGraph& traffic,
              const PacketOptions& options);
  EngineState(const EngineState&) = delete;
  EngineState& operator=(const EngineState&) = delete;

  Picoseconds next_outage_at() const { return outages.next_at(clock); }
  void schedule_control() {
    next_control_at = std::min({next_outage_at(), observers.next_at(), clock.packet_time(kLatest)});
  }
  bool is_too_late() const { return clock.flow_time() >= kLatest; }
  // The clock of the flows skips so much time, after observers.begin_skip(): what happened since
  // `since`, by the clock of the packets, happens another `times` times.
  void skip(Picoseconds time, Picoseconds since, std::uint64_t times) {
    clock.skipped += time;
    link_queues.pauses().skip(since, times, time);
    observers.end_skip();
    schedule_control();
  }

  PacketNetwork network;
  SimulationClock clock;
  Random random;
  CalendarQueue calendar;
  LinkQueues link_queues;
  Senders senders;
  FlowProgress flows;
  TimerQueue timers;
  OutageSchedule outages;
  PeriodicObservers observers;
  Picoseconds next_control_at = kNever;  // the next outage or observer, or kLatest
  std::uint64_t packets = 0;             // arrived
};

}  // namespace regatta::fabric::packet
