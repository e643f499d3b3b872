// simulate/internal/rank_classes.h: ranks that a network does not distinguish, so that the messages
// of one to all others move as those of the next one: groups below the same leaves, in servers of
// the same kind.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "regatta/base/core/result.h"
#include "regatta/network/simulate/simulated_network.h"

namespace regatta::simulate {

struct RankClasses {
  std::vector<std::vector<std::uint32_t>> classes;  // of ranks, in order
  std::vector<std::uint32_t> class_of;              // per rank; kNoClass: none
  // Per rank: the NIC link that represents its own; equal for NIC links that are alike.
  std::vector<LinkId> representative_nic;

  static constexpr std::uint32_t kNoClass = ~0U;
};

// The classes of the ranks in `sets`; two are alike only where they are in the same sets. NIC links
// with different `marks`, by LinkId, are not alike. Two ranks of a class have equally many ranks of
// each class in their servers and behind their NICs. Fails with kInvalidInput where a rank has no
// NIC.
Result<RankClasses> find_rank_classes(const SimulatedNetwork& network,
                                      std::span<const std::vector<std::uint32_t>> sets,
                                      std::span<const std::uint64_t> marks);

}  // namespace regatta::simulate
