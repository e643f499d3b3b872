// fabric/flow_simulation.h: when flows start and end that share links max-min fair, as if each were
// a fluid: what it has of its links follows at once when another starts or ends.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "regatta/base/core/result.h"
#include "regatta/base/core/units.h"
#include "regatta/network/fabric/internal/time_bins.h"
#include "regatta/network/fabric/traffic.h"

namespace regatta::fabric {

// How many bytes crossed each link when, in a bounded number of equal bins
// of time: as time goes on they become twice as long, two in one.

class LinkHistory {
 public:
  // `bins` >= 2, even; the first ones are `width` > 0 seconds long.
  LinkHistory(std::size_t links, std::size_t bins, double width);

  // `rate` bytes per second crossed the link from `begin` to `end`, in seconds, 0 <= begin <= end.
  void add(std::uint32_t link, double rate, double begin, double end);

  // What crossed `from` crossed `to` as well.
  void add_all(std::uint32_t from, std::uint32_t to);

  double width() const { return bins_.width(); }  // seconds
  std::size_t used() const {
    return bins_.used();
  }  // bins, up to the last one that something is in
  double bytes(std::uint32_t link, std::size_t bin) const { return bins_.at(link, bin); }

 private:
  TimeBins bins_;
};

// In seconds from the begin of the simulation; infinite: never.
struct FlowTimes {
  double start = 0;
  double sent = 0;     // all of it has left the sender
  double arrived = 0;  // the latency of its path later
};

struct FlowReport {
  std::vector<FlowTimes> flows;
  Seconds end;                        // when the last flow has arrived
  std::vector<double> bytes_of_link;  // that crossed it
  std::size_t unfinished = 0;         // flows that never arrive: no capacity was left on their path
};

// What happens to the network meanwhile.
struct NetworkChange {
  enum class Kind : std::uint8_t {
    kCapacity,  // link `which` has `capacity` from then on
    kPath,  // what path `which` was to carry takes path `other`; what is in flight goes on there
  };
  double time = 0;  // seconds
  Kind kind = Kind::kCapacity;
  std::uint32_t which = 0;
  double capacity = 0;  // bytes per second, >= 0
  std::uint32_t other = 0;
};

struct FlowOptions {
  std::span<const NetworkChange> changes;  // by time
  LinkHistory* history = nullptr;          // gets what crosses each link when
  // Called for each flow once it is sent, in the order of that; `arrived` is known then.
  std::function<void(std::uint32_t flow, const FlowTimes& times)> on_sent;
  // What would be sent within so much time is sent together: flows then end early by at most this,
  // in seconds, and by 1 % of what they take; >= 0. 0: exact.
  double resolution = 0;
};

// Sends the traffic. Fails with kInvalidInput where flows wait for each other in a cycle. The
// paths of `traffic` are among `paths`, and their links among `links`; deterministic.
Result<FlowReport> simulate_flows(const Links& links, const Paths& paths, const FlowGraph& traffic,
                                  const FlowOptions& options = {});

}  // namespace regatta::fabric
