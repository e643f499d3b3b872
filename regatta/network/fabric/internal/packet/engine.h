// fabric/internal/packet/engine.h: what happens in a fabric of packets, one event after the other.
#pragma once

#include <cstdint>
#include <optional>
#include <queue>
#include <vector>

#include "regatta/base/core/result.h"
#include "regatta/network/fabric/internal/packet/calendar.h"
#include "regatta/network/fabric/internal/packet/cycles.h"
#include "regatta/network/fabric/internal/packet/flows.h"
#include "regatta/network/fabric/internal/packet/lines.h"
#include "regatta/network/fabric/internal/packet/order.h"
#include "regatta/network/fabric/internal/packet/random.h"
#include "regatta/network/fabric/internal/packet/recorder.h"
#include "regatta/network/fabric/internal/packet/recurrence.h"
#include "regatta/network/fabric/internal/packet/senders.h"
#include "regatta/network/fabric/internal/packet/spread.h"
#include "regatta/network/fabric/internal/packet/steady.h"
#include "regatta/network/fabric/internal/packet/storms.h"
#include "regatta/network/fabric/mixed_simulation.h"
#include "regatta/network/fabric/packet_simulation.h"

namespace regatta::fabric::packet {

class Engine {
 public:
  Engine(Network network, const PacketScene& scene, const Traffic& traffic,
         const PacketOptions& options);

  // From now on it leaps where rates stay.
  void set_leaps(const PacketOptions& packets, const MixedOptions& options) {
    steady_.emplace(network_, packets, options);
    most_error_ = options.most_error;
    flows_.set_notes();
  }
  Result<MixedReport> run();

 private:
  // What happens seldom, and may be due several times.
  enum class What : std::uint8_t {
    kWake,    // the NIC of link `of` may send again
    kNotice,  // connection `of` hears of congestion
    kAgain,   // packet `of` of lost_ is sent again
  };
  struct Timer {
    Picoseconds at;
    std::uint64_t order;
    What what;
    std::uint32_t of;
    bool operator<(const Timer& other) const {
      return at != other.at ? at > other.at : order > other.order;
    }
  };

  void happen(const Calendar::Event& event);
  void happen(const Timer& timer);
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
    return std::max(now_, picoseconds(outages_[outages_past_].at.value) - flows_.leapt());
  }
  void break_out();
  bool goes_on(Picoseconds next) const;
  void mark();
  void set_mark();
  void record();
  void wake();
  void pass(Picoseconds time);
  void poll();
  void watch_what_stands();
  void take_routes(const Routes& routes);
  void set_timer(Picoseconds at, What what, std::uint32_t of);
  void look();
  void look_back(std::uint32_t link);
  bool print_all(Print& print) const;
  void look_for_cycle(std::uint32_t flow);
  void repeat(const Moment& before, const Moment& now, std::uint64_t times);
  double time_to_change() const;
  void note_change();
  void leap_packets(const Sending& sending, std::uint64_t packets);
  void leap(const std::vector<Sending>& sending, const SteadyRates& steady);
  MixedReport report() const;

  Network network_;
  const PacketScene scene_;
  const HashPolicy policy_;
  const Spread spread_;
  const std::uint32_t connections_;
  const std::uint64_t mtu_;
  const Picoseconds again_after_;
  Random random_;
  Calendar calendar_;
  Lines lines_;
  Senders senders_;
  Flows flows_;
  Spreader spreader_;
  const bool is_by_packet_;    // switches choose for each packet
  std::vector<Order> orders_;  // per connection
  std::priority_queue<Timer> timers_;
  std::uint64_t order_ = 0;
  std::vector<Packet> lost_;         // that are to be sent again
  std::vector<std::uint32_t> free_;  // places in it
  std::vector<Picoseconds> wakes_;   // per link: the first one that is set
  Picoseconds now_ = 0;
  Picoseconds still_ = 0;  // by the clock of the flows
  std::uint64_t packets_ = 0;
  std::uint64_t events_ = 0;
  std::uint64_t expired_ = 0;
  std::uint64_t lost_count_ = 0;
  std::uint64_t notices_ = 0;
  std::uint64_t lost_on_links_ = 0;

  enum class Cable : std::uint8_t { kWell, kDead, kGone };  // the last: for good
  const std::vector<Outage> outages_;
  std::size_t outages_past_ = 0;
  Picoseconds outage_was_at_ = 0;
  struct Parked {
    std::uint32_t place;  // in lost_
    Picoseconds lost_at;  // by the clock of the flows
  };
  std::vector<Parked> parked_;    // what is not sent again before the next outage
  std::vector<Cable> cables_;     // per link; empty: all are well
  std::optional<Routes> routes_;  // since the last outage that changed them
  Picoseconds mark_at_ = kNever;  // the next outage, look of the recorder or poll of the watch
  Recorder recorder_;
  bool is_resting_ = false;  // the recorder, for nothing happens
  Storms storms_;
  std::uint64_t reordered_ = 0;
  std::uint32_t most_held_ = 0;

  std::optional<Steady> steady_;  // with leaps
  std::vector<double> rests_;     // per connection: parts of packets that leaps left over
  Recurrence recurrence_;
  std::uint64_t leaps_back_ = 0;
  Cycles cycles_;
  std::uint64_t cycles_repeated_ = 0;
  double most_error_ = 0;
  double bound_ = 0;  // picoseconds
  std::uint64_t leaps_ = 0;
  std::uint64_t leaps_by_max_min_ = 0;
};

}  // namespace regatta::fabric::packet
