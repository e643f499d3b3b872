// simulate/internal/rank_classes.h: ranks that nothing in a network tells apart, so that what one
// of them sends to all others moves as what the next one sends: groups below the same leaves, in
// servers of the same kind.
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
  // Per rank: the NIC link that stands for its own; the same for those that are alike.
  std::vector<LinkId> representative_nic;

  static constexpr std::uint32_t kNoClass = ~0U;
};

// Of the ranks that are in one of `sets`; two are alike only where they are in the same ones.
// `marks` tells NIC links apart beyond that, by LinkId: those with different marks are not alike.
// Two of a group have as many ranks of each group in their servers, and behind their NICs. Fails
// with kInvalidInput where a rank has no NIC.
Result<RankClasses> find_rank_classes(const SimulatedNetwork& network,
                                      std::span<const std::vector<std::uint32_t>> sets,
                                      std::span<const std::uint64_t> marks);

}  // namespace regatta::simulate
