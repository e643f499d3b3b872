// fabric/internal/packet/steady_state_detector.h: detects steady rates of connections, and measures
// them.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "regatta/network/fabric/internal/packet/packet.h"
#include "regatta/network/fabric/packet_simulation.h"

namespace regatta::fabric::packet {

// The rest of a message that a connection still has to send.
struct ActiveSend {
  std::uint32_t connection;
  std::uint32_t flow;
  std::uint64_t left;  // bytes
};

// Rates in packets per picosecond, of whole packets.
struct SteadyRates {
  std::vector<double> rates;  // per ActiveSend
  double deviation = 0;       // of what was measured from them, relative, at most
  bool is_max_min = false;    // otherwise as measured
};

class SteadyStateDetector {
 public:
  SteadyStateDetector(const PacketNetwork& network, const PacketOptions& packets,
                      const MixedOptions& options);

  // A message begins or ends.
  void changed(Picoseconds now) {
    ++window_number_;
    is_first_ = true;
    begun_at_ = now;
    window_ = options_window_;
    check_at_ = now + window_;
  }
  void sent(const Packet& packet, Picoseconds now) {
    Counts& counts = counts_[packet.connection];
    if (counts.window_number != window_number_ || counts.flow != packet.flow) {
      counts.window_number = window_number_;
      counts.flow = packet.flow;
      counts.sent = counts.arrived = {};
    }
    counts.sent.note(now);
    ++counts.in_flight;
    ++in_flight_;
  }
  // Packets of earlier messages are in flight, but not counted.
  void arrived(const Packet& packet, Picoseconds now) {
    Counts& counts = counts_[packet.connection];
    if (counts.window_number == window_number_ && counts.flow == packet.flow)
      counts.arrived.note(now);
    --counts.in_flight;
    --in_flight_;
    if (packet.is_retransmit && --missing_ == 0) changed(now);
  }
  // Lost on its path. A retransmission is out of order: no rate is steady until it has arrived.
  void lost(const Packet& packet, Picoseconds now) {
    --counts_[packet.connection].in_flight;
    --in_flight_;
    if (!packet.is_retransmit) ++missing_;
    changed(now);
  }
  // It will not be sent again.
  void lost_for_good(const Packet& packet, Picoseconds now) {
    lost(packet, now);
    --missing_;
  }
  // A packet that was lost for good is sent again after all.
  void expect_retransmit() { ++missing_; }
  bool is_complete() const { return missing_ == 0; }

  // When to check whether the rates are steady; kNever: not before something changes.
  Picoseconds check_at() const { return check_at_; }
  void stop_checks() { check_at_ = kNever; }
  // When the window of the last check began.
  Picoseconds begun_at() const { return begun_at_; }
  // Checks at check_at(); `sending` are all active sends; calm: no link pauses. None: not steady;
  // check_at() is later.
  std::optional<SteadyRates> check(const std::vector<ActiveSend>& sending, Picoseconds now,
                                   bool is_calm);

 private:
  struct Stream {
    std::uint32_t count = 0;
    Picoseconds first = 0;
    Picoseconds last = 0;
    void note(Picoseconds now) {
      if (count++ == 0) first = now;
      last = now;
    }
    // Packets per picosecond, by the mean time between them; 0 where they are too few, or no longer
    // arrive.
    double rate(Picoseconds now) const {
      if (count < 8 || last == first) return 0;
      const double rate = static_cast<double>(count - 1) / static_cast<double>(last - first);
      return static_cast<double>(now - last) * rate > 2 ? 0 : rate;
    }
  };
  struct Counts {
    std::uint32_t window_number = 0;
    std::uint32_t flow = kNone;
    std::uint32_t in_flight = 0;  // packets
    Stream sent;
    Stream arrived;
    double before = 0;  // rate of arrival in the window before
  };

  bool has_come(const ActiveSend& one) const;
  bool is_max_min(const std::vector<ActiveSend>& sending, Picoseconds now,
                  SteadyRates& found) const;
  bool is_as_before(const std::vector<ActiveSend>& sending, Picoseconds now,
                    SteadyRates& found) const;
  bool has_drained(const std::vector<ActiveSend>& sending) const;
  std::vector<double> max_min(const std::vector<ActiveSend>& sending) const;
  void next_window(const std::vector<ActiveSend>& sending, Picoseconds now);

  const PacketNetwork& network_;
  const double wire_;  // bytes of a whole packet
  const double tolerance_;
  const double even_tolerance_;  // of packets that come evenly
  const Picoseconds options_window_;
  std::vector<Counts> counts_;  // per connection
  std::size_t missing_ = 0;     // packets that were lost and have not come since
  std::uint64_t in_flight_ = 0;
  std::uint32_t window_number_ = 1;
  bool is_first_ = true;      // window since something changed
  Picoseconds begun_at_ = 0;  // the window
  Picoseconds window_ = 0;
  Picoseconds check_at_ = kNever;
};

}  // namespace regatta::fabric::packet
