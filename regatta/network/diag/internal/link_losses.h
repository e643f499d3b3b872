// diag/internal/link_losses.h: what probes lost of late on the paths over each link, long before it
// is enough for a verdict. Pure.
#pragma once

#include <span>
#include <vector>

#include "regatta/model/topo/graph.h"
#include "regatta/network/diag/internal/probe_windows.h"
#include "regatta/network/diag/observation.h"
#include "regatta/network/fabric/traffic.h"

namespace regatta::diag {

struct LinkLossInput {
  const topo::Graph& graph;
  const fabric::Paths& paths;
  const ProbeWindows& windows;
  const std::vector<bool>& left_out;        // paths that do not count; empty: none
  std::span<const std::uint32_t> broken{};  // links with a fault that is known
};

// The links that lost something in the last 17 windows up to `last` or are blind, ascending. Losses
// count as soon as both ends have reported and were awake, else as for verdicts; and for those
// links of their path that lose about the largest share of what crosses them: of these only for
// those that are known to be broken, if there are any. A packet that dies on a known fault of 30 %
// or more does not count as sent over its other links: these may be blind by it.
std::vector<LinkLoss> link_losses(const LinkLossInput& input, Window last, Seconds now);

}  // namespace regatta::diag
