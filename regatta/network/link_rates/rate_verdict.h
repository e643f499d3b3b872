// link_rates/rate_verdict.h: which links carry less than they should, from the rates of packet
// trains. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "regatta/base/core/units.h"
#include "regatta/model/topo/graph.h"
#include "regatta/network/link_rates/rate_plan.h"

namespace regatta::link_rates {

// The trains over one path, together.
struct PathMeasurement {
  TrainPath path;
  BytesPerSecond rate;     // median of the trains; 0: none arrived
  BytesPerSecond offered;  // what the sender can send at least; 0: not known
  int trains = 0;          // that arrived
};

// Another link that explains the same rates.
struct SlowLinkAlternative {
  std::uint32_t link = 0;  // directed
  // Loads one of the two and not the other: a train over it decides. None where no train can.
  std::optional<TrainPath> separator;
};

// A link that carries less than it should, in one direction.
struct SlowLink {
  std::uint32_t link = 0;  // directed
  BytesPerSecond described;
  BytesPerSecond measured;
  // Indices of the measurements. Slow ones that load it, and those that load all links before it on
  // the same way and are not slow.
  std::vector<std::size_t> slow_paths;
  std::vector<std::size_t> fast_before;
  std::vector<SlowLinkAlternative> alternatives;
};

// The rate of a link, as far as trains show it.
struct LinkRate {
  std::uint32_t link = 0;    // directed
  BytesPerSecond at_least;   // the fastest train over it; 0: none arrived
  BytesPerSecond described;  // in the cluster file
  // Trains that could show its whole rate arrived: what limits them is the link itself.
  bool is_measured = false;
};

struct RateVerdicts {
  std::vector<SlowLink> slow;   // the one that explains most first
  std::vector<LinkRate> links;  // all directed links, in order
  std::size_t unexplained = 0;  // slow paths that no link explains
  // By measurement: what the described rates and the slow links let expect.
  std::vector<BytesPerSecond> expected;
};

struct RateVerdictOptions {
  double slow_below = 0.8;  // of the described rate
};

// Every measured path is as fast as its slowest loaded link. The links whose lower rates explain
// the measurements best are chosen one by one, by least squares of the logarithms, and their rates
// fitted. `candidates`: paths that may separate a link from its alternatives, when fewer of their
// links are loaded.
RateVerdicts decide_rates(const topo::Graph& graph, std::span<const PathMeasurement> measurements,
                          std::span<const TrainPath> candidates,
                          const RateVerdictOptions& options = {});

}  // namespace regatta::link_rates
