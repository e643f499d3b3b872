#include "regatta/network/fabric/internal/packet/steady_state_detector.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "regatta/network/fabric/flow_simulation.h"

namespace regatta::fabric::packet {

SteadyStateDetector::SteadyStateDetector(const PacketNetwork& network, const PacketOptions& packets,
                                         const MixedOptions& options)
    : network_(network),
      wire_(static_cast<double>(packets.mtu.value + packets.header.value)),
      tolerance_(options.tolerance),
      // A queue that grows slowly to where links pause or drop would be overlooked.
      even_tolerance_(packets.pauses || packets.buffer ? 1e-6 : options.tolerance),
      options_window_(static_cast<Picoseconds>(options.window.value * 1e12)),
      counts_(network.path_of.size()) {}

std::optional<SteadyRates> SteadyStateDetector::check(const std::vector<ActiveSend>& sending,
                                                      Picoseconds now, bool is_calm) {
  SteadyRates found;
  const bool is_known =
      !sending.empty() && missing_ == 0 && has_drained(sending) &&
      std::ranges::all_of(sending, [this](const ActiveSend& one) { return has_come(one); });
  if (is_known &&
      ((is_calm && is_max_min(sending, now, found)) || is_as_before(sending, now, found)))
    return found;
  next_window(sending, now);
  return std::nullopt;
}

// Packets of the message that is sent now, and so all that the connection sent before.
bool SteadyStateDetector::has_come(const ActiveSend& one) const {
  const Counts& counts = counts_[one.connection];
  return counts.window_number == window_number_ && counts.flow == one.flow &&
         counts.arrived.count >= 8;
}

// By the time between packets, which is exact where they come evenly.
bool SteadyStateDetector::is_max_min(const std::vector<ActiveSend>& sending, Picoseconds now,
                                     SteadyRates& found) const {
  found.rates = max_min(sending);
  found.is_max_min = true;
  found.deviation = 0;
  for (std::size_t i = 0; i < sending.size(); ++i) {
    const Counts& counts = counts_[sending[i].connection];
    for (const double rate : {counts.sent.rate(now), counts.arrived.rate(now)})
      found.deviation = std::max(found.deviation, std::abs(rate / found.rates[i] - 1));
  }
  return found.deviation <= even_tolerance_;
}

// By how many packets were sent and arrived in two windows.
bool SteadyStateDetector::is_as_before(const std::vector<ActiveSend>& sending, Picoseconds now,
                                       SteadyRates& found) const {
  if (is_first_) return false;
  const double time = static_cast<double>(now - begun_at_);
  found.is_max_min = false;
  found.deviation = 0;
  found.rates.resize(sending.size());
  for (std::size_t i = 0; i < sending.size(); ++i) {
    const Counts& counts = counts_[sending[i].connection];
    found.rates[i] = counts.arrived.count / time;
    for (const double rate : {counts.sent.count / time, counts.before})
      found.deviation = std::max(found.deviation, std::abs(rate / found.rates[i] - 1));
    found.deviation = std::max(found.deviation, 1.0 / counts.arrived.count);
  }
  return found.deviation <= tolerance_;
}

// Nothing is in flight but of those that send.
bool SteadyStateDetector::has_drained(const std::vector<ActiveSend>& sending) const {
  std::uint64_t in_flight = 0;
  for (const ActiveSend& one : sending)
    in_flight += counts_[one.connection].in_flight;
  return in_flight == in_flight_;
}

std::vector<double> SteadyStateDetector::max_min(const std::vector<ActiveSend>& sending) const {
  MaxMinProblem max_min_problem;
  std::unordered_map<std::uint32_t, std::uint32_t> number_of_link;
  std::vector<std::uint32_t> over;
  for (const ActiveSend& one : sending) {
    over.clear();
    for (std::uint32_t at = network_.path_of[one.connection];; ++at) {
      const std::uint32_t link = network_.paths[at];
      if ((link & PacketNetwork::kLoopsBack) != 0) break;
      const auto [place, is_new] = number_of_link.try_emplace(link, 0);
      if (is_new)
        place->second =
            max_min_problem.add_link(network_.links[link].bytes_per_picosecond() / wire_);
      over.push_back(place->second);
      if (network_.links[link].is_to_host) break;
    }
    max_min_problem.add_flow(over);
  }
  return max_min_rates(max_min_problem);
}

void SteadyStateDetector::next_window(const std::vector<ActiveSend>& sending, Picoseconds now) {
  for (const ActiveSend& one : sending) {
    Counts& counts = counts_[one.connection];
    const bool is_of_window = counts.window_number == window_number_ && counts.flow == one.flow;
    counts.before = is_of_window ? counts.arrived.count / static_cast<double>(now - begun_at_) : 0;
  }
  ++window_number_;
  is_first_ = false;
  window_ *= 2;  // pauses may come and go slowly
  begun_at_ = now;
  check_at_ = now + window_;
}

}  // namespace regatta::fabric::packet
