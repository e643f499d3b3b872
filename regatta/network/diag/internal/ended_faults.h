// diag/internal/ended_faults.h: black holes and heavy losses that end: windows from before the end
// say nothing about the network as it is, and mixed with those after it they look like another
// fault. Pure.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "regatta/model/topo/graph.h"
#include "regatta/network/diag/fault_verdict.h"
#include "regatta/network/diag/internal/path_tally.h"
#include "regatta/network/diag/observation.h"

namespace regatta::diag {

class EndedFaults {
 public:
  explicit EndedFaults(const topo::Graph& graph) : graph_(graph) {}

  // Clears in `tally`, on the paths across each fault of `active` that loses all packets of some or
  // all flows: once several windows show that it has ended, the windows until its end, also when
  // it is no longer active; while fewer show it, the windows since then. Across each fault that
  // loses a tenth of all packets or more: the windows until its last loss, once it has ended.
  void trim(std::span<const FaultVerdict> active, PathTally& tally);

 private:
  struct EndedFault {
    std::vector<std::uint32_t> links;  // ascending
    Window last_lossy = -1;
  };
  // `active`: the links of each active fault.
  void trim_loss(std::span<const std::vector<std::uint32_t>> active, std::size_t place,
                 double share, PathTally& tally);
  void forget_until(const std::vector<std::uint32_t>& links, Window last, PathTally& tally);
  // Paths across this fault and no other one.
  std::vector<std::size_t> own_paths(std::span<const std::vector<std::uint32_t>> active,
                                     std::size_t place, const PathTally& tally) const;
  void trim_one(std::span<const std::vector<std::uint32_t>> active, std::size_t place,
                PathTally& tally);

  const topo::Graph& graph_;
  std::vector<EndedFault> ended_;  // as long as their windows are in memory
};

}  // namespace regatta::diag
