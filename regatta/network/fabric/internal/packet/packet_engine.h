// fabric/internal/packet/packet_engine.h: simulates the packets of a fabric, event by event.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>

#include "regatta/base/core/result.h"
#include "regatta/network/fabric/internal/packet/engine_state.h"
#include "regatta/network/fabric/internal/packet/fast_forwarder.h"
#include "regatta/network/fabric/internal/packet/load_balancer.h"
#include "regatta/network/fabric/internal/packet/lost_packets.h"
#include "regatta/network/fabric/internal/packet/receivers.h"
#include "regatta/network/fabric/packet_simulation.h"

namespace regatta::fabric::packet {

class PacketEngine {
 public:
  PacketEngine(PacketNetwork network, const PacketSetup& setup, const FlowGraph& traffic,
               const PacketOptions& options);

  // From now on it fast-forwards where rates are steady.
  void enable_fast_forward(const PacketOptions& packets, const MixedOptions& options) {
    fast_forwarder_.emplace(state_, packets, options);
  }
  Result<MixedReport> run();

 private:
  void handle(const CalendarQueue::Event& event);
  void handle(const TimerQueue::Timer& timer);
  void start(std::uint32_t flow);
  void packet_sent(std::uint32_t link);
  void send_next(std::uint32_t link);
  void arrive(std::uint32_t link);
  std::uint32_t next_link(std::uint32_t link, Packet& packet);
  void receive(const Packet& packet);
  void lose(const Packet& packet);
  void lose_on(std::uint32_t link, const Packet& packet);
  void lose_for_good(const Packet& packet);
  void apply_outage();
  void set_routes(const Routes& routes);
  bool goes_on(Picoseconds next) const;
  void run_control();
  void wake();
  bool is_stopped() const { return stop_ != nullptr && *stop_; }
  MixedReport report() const;

  EngineState state_;
  const PacketSetup setup_;
  const HashPolicy policy_;
  const LoadBalancing load_balancing_;
  const std::uint32_t connections_;
  const Picoseconds retransmit_after_;
  const std::atomic<bool>* const stop_;
  LoadBalancer load_balancer_;
  const bool is_by_packet_;       // switches choose for each packet
  std::optional<Routes> routes_;  // since the last outage that changed them
  Receivers receivers_;
  LostPackets lost_;
  std::optional<FastForwarder> fast_forwarder_;
  Picoseconds quiescent_at_ = 0;  // by the clock of the flows
  std::uint64_t events_ = 0;
  std::uint64_t expired_ = 0;
  std::uint64_t lost_count_ = 0;
  std::uint64_t cnps_ = 0;
  std::uint64_t lost_on_links_ = 0;
};

}  // namespace regatta::fabric::packet
