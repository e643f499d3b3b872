// fabric/flow_simulation.h: simulates flows that share links max-min fairly as fluids: rates adapt
// at once when a flow starts or ends.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <span>
#include <vector>

#include "regatta/base/core/result.h"
#include "regatta/base/core/units.h"
#include "regatta/network/fabric/internal/time_bins.h"
#include "regatta/network/fabric/traffic.h"

namespace regatta::fabric {

// Max-min fair rates: no flow can go faster without slowing down one that is not faster.

// Links and flows by number; the vectors are flat, for there may be millions of flows.
struct MaxMinProblem {
  // Per link, in bytes per second; >= 0, may be infinite.
  std::vector<double> capacity;
  // Flow f crosses links[first[f]] to links[first[f + 1] - 1], each at most once.
  std::vector<std::uint32_t> first = {0};
  std::vector<std::uint32_t> links;
  // Parallel to `links`: the link capacity that a flow takes per unit of its rate; > 0. Empty: 1
  // everywhere. More than 1 stands for several like flows.
  std::vector<double> amounts;
  // Per flow, > 0: flows limited by the same link get rates in these ratios. Empty: 1 everywhere.
  std::vector<double> weights;
  // Per flow, its highest rate in bytes per second; >= 0. Empty: no limits.
  std::vector<double> limits;

  std::size_t flows() const { return first.size() - 1; }
  std::uint32_t add_link(double bytes_per_second) {
    capacity.push_back(bytes_per_second);
    return static_cast<std::uint32_t>(capacity.size() - 1);
  }
  template <typename Links>
  std::uint32_t add_flow(const Links& over) {
    links.insert(links.end(), over.begin(), over.end());
    first.push_back(static_cast<std::uint32_t>(links.size()));
    return static_cast<std::uint32_t>(flows() - 1);
  }
};

inline constexpr double kNoLimit = std::numeric_limits<double>::infinity();

// The rate of each flow in bytes per second; kNoLimit where nothing limits it. Vectors that are not
// empty have the lengths above. Progressive filling: Bertsekas and Gallager, "Data Networks", 1992,
// section 6.5.2. The level at which a link is full only rises while flows are fixed below it, so a
// heap of levels is corrected when it is read: O((crossings + links) log links) steps, plus sorting
// the limits.
std::vector<double> max_min_rates(const MaxMinProblem& max_min_problem);

// The bytes that crossed each link over time, in a bounded number of equal bins: when they are used
// up, pairs of bins merge into bins of twice the width.
class LinkHistory {
 public:
  // `bins` >= 2, even; the first ones are `width` > 0 seconds long.
  LinkHistory(std::size_t links, std::size_t bins, double width);

  // `rate` bytes per second crossed the link from `begin` to `end`, in seconds, 0 <= begin <= end.
  void add(std::uint32_t link, double rate, double begin, double end);

  // Adds the bytes that crossed `from` to `to`.
  void add_all(std::uint32_t from, std::uint32_t to);

  // Multiplies all bytes by `factor` >= 0.
  void multiply(double factor);

  // Widens the bins until `end`, in seconds, is in one.
  void reach(double end) { bins_.reach(end); }

  double width() const { return bins_.width(); }     // seconds
  std::size_t used() const { return bins_.used(); }  // bins, up to the last one that is not empty
  double bytes(std::uint32_t link, std::size_t bin) const { return bins_.at(link, bin); }

 private:
  TimeBins bins_;
};

// In seconds from the start of the simulation; infinite: never.
struct FlowTimes {
  double start = 0;
  double sent = 0;     // its last byte leaves the sender
  double arrived = 0;  // later by the latency of its path
};

struct FlowReport {
  std::vector<FlowTimes> flows;
  Seconds end;              // when the last flow has arrived, or the simulation was stopped
  bool is_stopped = false;  // FlowOptions::stop was set before the end
  std::vector<double> bytes_of_link;  // that crossed it
  std::size_t unfinished = 0;         // flows that never arrive: their path has no capacity left
};

// A change of the network during the simulation.
struct NetworkChange {
  enum class Kind : std::uint8_t {
    kCapacity,  // link `which` has `capacity` from then on
    kPath,      // flows of path `which`, also those in flight, continue on path `other`
  };
  double time = 0;  // seconds
  Kind kind = Kind::kCapacity;
  std::uint32_t which = 0;
  double capacity = 0;  // bytes per second, >= 0
  std::uint32_t other = 0;
};

struct FlowOptions {
  std::span<const NetworkChange> changes;  // by time
  LinkHistory* history = nullptr;          // records the bytes that cross each link over time
  // Called for each flow once its last byte has crossed its path but for the latency, in that
  // order; `arrived` is known then.
  std::function<void(std::uint32_t flow, const FlowTimes& times)> on_sent;
  // Flows that end within so many seconds end together: early by at most this, and by at most 1 %
  // of their duration; >= 0. 0: exact.
  double resolution = 0;
  const std::atomic<bool>* stop = nullptr;  // ends the simulation early once it is true
};

// Sends the traffic. Fails with kInvalidInput where flows wait for each other in a cycle. The
// paths of `traffic` are among `paths`, and their links among `links`; deterministic.
Result<FlowReport> simulate_flows(const Links& links, const Paths& paths, const FlowGraph& traffic,
                                  const FlowOptions& options = {});

}  // namespace regatta::fabric
