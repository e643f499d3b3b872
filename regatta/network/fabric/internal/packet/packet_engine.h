// fabric/internal/packet/packet_engine.h: simulates the packets of a fabric, event by event.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <queue>
#include <vector>

#include "regatta/base/core/result.h"
#include "regatta/network/fabric/internal/packet/calendar_queue.h"
#include "regatta/network/fabric/internal/packet/cycle_detector.h"
#include "regatta/network/fabric/internal/packet/flow_progress.h"
#include "regatta/network/fabric/internal/packet/link_queues.h"
#include "regatta/network/fabric/internal/packet/load_balancer.h"
#include "regatta/network/fabric/internal/packet/pfc_storm_monitor.h"
#include "regatta/network/fabric/internal/packet/random.h"
#include "regatta/network/fabric/internal/packet/recorder.h"
#include "regatta/network/fabric/internal/packet/recurrence_detector.h"
#include "regatta/network/fabric/internal/packet/reorder_buffer.h"
#include "regatta/network/fabric/internal/packet/senders.h"
#include "regatta/network/fabric/internal/packet/simulation_clock.h"
#include "regatta/network/fabric/internal/packet/steady_state_detector.h"
#include "regatta/network/fabric/packet_simulation.h"

namespace regatta::fabric::packet {

class PacketEngine {
 public:
  PacketEngine(PacketNetwork network, const PacketSetup& setup, const FlowGraph& traffic,
               const PacketOptions& options);

  // From now on it fast-forwards where rates are steady.
  void enable_fast_forward(const PacketOptions& packets, const MixedOptions& options) {
    steady_state_.emplace(network_, packets, options);
    most_error_ = options.most_error;
    flows_.log().enable();
  }
  Result<MixedReport> run();

 private:
  // Rare events, several of which may be due at once.
  enum class TimerKind : std::uint8_t {
    kWake,        // the NIC of link `of` may send again
    kCnp,         // connection `of` receives a CNP
    kRetransmit,  // packet `of` of lost_ is sent again
  };
  struct Timer {
    Picoseconds at;
    std::uint64_t order;
    TimerKind what;
    std::uint32_t of;
    bool operator<(const Timer& other) const {
      return at != other.at ? at > other.at : order > other.order;
    }
  };

  void handle(const CalendarQueue::Event& event);
  void handle(const Timer& timer);
  void start(std::uint32_t flow);
  void packet_sent(std::uint32_t link);
  void send_next(std::uint32_t link);
  void arrive(std::uint32_t link);
  std::uint32_t next_link(std::uint32_t link, Packet& packet);
  void receive(const Packet& packet);
  void lose(const Packet& packet);
  std::uint32_t keep(const Packet& packet);
  void lose_on(std::uint32_t link, const Packet& packet);
  void lose_for_good(const Packet& packet);
  // As the packets count time.
  Picoseconds next_outage() const {
    if (outages_past_ == outages_.size()) return kNever;
    return clock_.packet_time(picoseconds(outages_[outages_past_].at.value));
  }
  void apply_outage();
  bool goes_on(Picoseconds next) const;
  void run_control();
  void schedule_control();
  void record();
  void wake();
  void pass(Picoseconds time);
  void poll();
  void poll_until_quiescent();
  void take_routes(const Routes& routes);
  void set_timer(Picoseconds at, TimerKind what, std::uint32_t of);
  void look();
  void check_recurrence(std::uint32_t link);
  bool fingerprint_all(StateFingerprint& fingerprint) const;
  void check_cycle(std::uint32_t flow);
  void repeat(const CycleSnapshot& before, const CycleSnapshot& now, std::uint64_t times);
  double time_to_change() const;
  void note_change();
  void fast_forward_packets(const ActiveSend& sending, std::uint64_t packets);
  void fast_forward(const std::vector<ActiveSend>& sending, const SteadyRates& steady);
  bool is_stopped() const { return stop_ != nullptr && *stop_; }
  MixedReport report() const;

  PacketNetwork network_;
  const PacketSetup setup_;
  const HashPolicy policy_;
  const LoadBalancing load_balancing_;
  const std::uint32_t connections_;
  const std::uint64_t mtu_;
  const Picoseconds retransmit_after_;
  const std::atomic<bool>* const stop_;
  Random random_;
  CalendarQueue calendar_;
  LinkQueues link_queues_;
  Senders senders_;
  FlowProgress flows_;
  LoadBalancer load_balancer_;
  const bool is_by_packet_;                     // switches choose for each packet
  std::vector<ReorderBuffer> reorder_buffers_;  // per connection
  std::priority_queue<Timer> timers_;
  std::uint64_t order_ = 0;
  std::vector<Packet> lost_;         // that are to be sent again
  std::vector<std::uint32_t> free_;  // places in it
  std::vector<Picoseconds> wakes_;   // per link: the first one that is set
  SimulationClock clock_;
  Picoseconds quiescent_at_ = 0;  // by the clock of the flows
  std::uint64_t packets_ = 0;
  std::uint64_t events_ = 0;
  std::uint64_t expired_ = 0;
  std::uint64_t lost_count_ = 0;
  std::uint64_t cnps_ = 0;
  std::uint64_t lost_on_links_ = 0;

  enum class CableState : std::uint8_t { kUp, kDown, kRemoved };  // the last: for good
  const std::vector<Outage> outages_;
  std::size_t outages_past_ = 0;
  Picoseconds outage_was_at_ = 0;
  struct Parked {
    std::uint32_t place;  // in lost_
    Picoseconds lost_at;  // by the clock of the flows
  };
  std::vector<Parked> parked_;      // packets that are not sent again before the next outage
  std::vector<CableState> cables_;  // per link; empty: all are well
  std::optional<Routes> routes_;    // since the last outage that changed them
  Picoseconds next_control_at_ =
      kNever;  // the next outage, look of the recorder or poll of the watch
  Recorder recorder_;
  bool is_resting_ = false;  // the recorder, for nothing happens
  PfcStormMonitor storms_;
  std::uint64_t reordered_ = 0;
  std::uint32_t reorder_buffer_peak_ = 0;

  std::optional<SteadyStateDetector> steady_state_;  // with fast-forwards
  std::vector<double> rests_;  // per connection: parts of packets that fast-forwards left over
  RecurrenceDetector recurrence_detector_;
  std::uint64_t fast_forwards_by_recurrence_ = 0;
  CycleDetector cycle_detector_;
  std::uint64_t cycles_repeated_ = 0;
  double most_error_ = 0;
  double bound_ = 0;  // picoseconds
  std::uint64_t fast_forwards_ = 0;
  std::uint64_t fast_forwards_by_max_min_ = 0;
};

}  // namespace regatta::fabric::packet
