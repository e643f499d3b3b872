// fabric/internal/packet/fast_forwarder.h: skips simulated time where packets would only do what
// they did before: while rates are steady, a state recurs, or the steps of a collective repeat.
#pragma once

#include <cstdint>
#include <vector>

#include "regatta/network/fabric/internal/packet/cycle_detector.h"
#include "regatta/network/fabric/internal/packet/engine_state.h"
#include "regatta/network/fabric/internal/packet/recurrence_detector.h"
#include "regatta/network/fabric/internal/packet/steady_state_detector.h"
#include "regatta/network/fabric/packet_simulation.h"

namespace regatta::fabric::packet {

class FastForwarder {
 public:
  // `state` outlives it.
  FastForwarder(EngineState& state, const PacketOptions& packets, const MixedOptions& options);

  // A packet is sent, has arrived, or is lost.
  void sent(const Packet& packet) { steady_state_.sent(packet, state_.clock.now); }
  void arrived(const Packet& packet) { steady_state_.arrived(packet, state_.clock.now); }
  void lost(const Packet& packet) { steady_state_.lost(packet, state_.clock.now); }
  void lost_for_good(const Packet& packet) {
    steady_state_.lost_for_good(packet, state_.clock.now);
  }
  // A packet that was lost for good is sent again after all.
  void expect_retransmit() { steady_state_.expect_retransmit(); }
  // A message begins or ends.
  void changed() {
    steady_state_.changed(state_.clock.now);
    recurrence_detector_.changed();
  }
  // Links or routes have changed.
  void outage_happened();

  // When to check for steady rates; kNever: not before something changes.
  Picoseconds check_at() const { return steady_state_.check_at(); }
  // Each checks one reason to skip time, and skips it where the reason holds.
  void check_steady_rates();
  void pause_frame_arrived(std::uint32_t link);
  void flow_started(std::uint32_t flow);

  void report(MixedReport& report) const;

 private:
  bool fingerprint_all(StateFingerprint& fingerprint) const;
  double time_to_change() const;
  void fast_forward_packets(const ActiveSend& sending, std::uint64_t packets);
  void fast_forward(const std::vector<ActiveSend>& sending, const SteadyRates& steady);
  void repeat(const CycleSnapshot& before, const CycleSnapshot& now, std::uint64_t times);

  EngineState& state_;
  const std::uint64_t mtu_;
  const double retransmit_after_;  // picoseconds
  const double most_error_;
  SteadyStateDetector steady_state_;
  std::vector<double> rests_;  // per connection: parts of packets that fast-forwards left over
  RecurrenceDetector recurrence_detector_;
  CycleDetector cycle_detector_;
  double bound_ = 0;  // picoseconds
  std::uint64_t fast_forwards_ = 0;
  std::uint64_t fast_forwards_by_max_min_ = 0;
  std::uint64_t fast_forwards_by_recurrence_ = 0;
  std::uint64_t cycles_repeated_ = 0;
};

}  // namespace regatta::fabric::packet
