// fabric/internal/packet/outage_schedule.h: the outages of a simulation, past and to come, and
// which links are dead meanwhile.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "regatta/network/fabric/internal/packet/simulation_clock.h"
#include "regatta/network/fabric/packet_simulation.h"
#include "regatta/network/fabric/routes.h"

namespace regatta::fabric::packet {

class OutageSchedule {
 public:
  // `outages` by time; links: directed ones.
  OutageSchedule(std::vector<Outage> outages, std::size_t links)
      : outages_(std::move(outages)), states_(outages_.empty() ? 0 : links, LinkState::kUp) {}

  // Whether no outage is to come.
  bool is_over() const { return past_ == outages_.size(); }
  // When the next outage happens, by the clock of the packets; kNever: none does.
  Picoseconds next_at(const SimulationClock& clock) const {
    return is_over() ? kNever : clock.packet_time(picoseconds(outages_[past_].at.value));
  }
  // The next outage happens: returns it after the links that it names have changed.
  const Outage& apply(Picoseconds now);
  // When the last outage happened, by the clock of the packets; 0: none has.
  Picoseconds last_at() const { return last_at_; }

  bool is_up(std::uint32_t link) const {
    return states_.empty() || states_[link] == LinkState::kUp;
  }
  // Whether the link is dead and no later outage brings it back.
  bool is_removed(std::uint32_t link) const {
    return !states_.empty() && states_[link] == LinkState::kRemoved;
  }

 private:
  enum class LinkState : std::uint8_t { kUp, kDown, kRemoved };
  void set(LinkId link, LinkState state) {
    for (const bool forward : {true, false})
      states_[number_of({link, forward})] = state;
  }
  bool comes_back(LinkId link) const;

  const std::vector<Outage> outages_;
  std::size_t past_ = 0;
  Picoseconds last_at_ = 0;
  std::vector<LinkState> states_;  // per directed link; empty: there are no outages
};

}  // namespace regatta::fabric::packet
