// diag/internal/diverted_links.h: the links that a healer may lead users' packets around: those of
// active faults, and those of ended ones until they are surely in use again. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "regatta/base/core/units.h"
#include "regatta/model/topo/graph.h"
#include "regatta/network/diag/fault_verdict.h"

namespace regatta::diag {

class DivertedLinks {
 public:
  explicit DivertedLinks(const topo::Graph& graph) : graph_(graph) {}

  // Applies the changes of the verdicts at `now`.
  void update(const FaultChanges& changes, Seconds now);
  // Forgets links that are surely in use again.
  void expire(Seconds now);

  // Whether packets planned over these directed links may take others.
  bool crosses(std::span<const std::uint32_t> path) const;

 private:
  struct Record {
    int active = 0;  // faults of this link
    int ended = 0;   // within the time for which it is kept
    Seconds until;   // while none is active
  };

  const topo::Graph& graph_;
  std::map<std::uint32_t, Record> links_;  // by number of the directed link
};

}  // namespace regatta::diag
