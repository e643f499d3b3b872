// bench/own_ranks.h: Regatta's side of the benchmark: forks the ranks on this machine.
#pragma once

#include <vector>

#include "regatta/bench/timing.h"
#include "regatta/core/result.h"

namespace regatta::bench {

inline constexpr int kRanksMax = 64;
inline constexpr std::size_t kSizesMax = 64;
inline constexpr int kBatchesMax = 1000;

// Two contenders: "private" with ordinary memory, "shared" with buffers of
// Communicator::allocate(). No other thread of the process may be at work while it forks.
// Fails with the first error of a rank.
Result<std::vector<Contender>> run_own_ranks(const Task& task);

}  // namespace regatta::bench
