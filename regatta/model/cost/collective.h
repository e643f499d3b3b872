// cost/collective.h: closed-form costs of collectives in the alpha-beta model: latency steps and
// bytes that each rank sends. The planner multiplies the steps by the latency of the slowest path
// and puts the bytes on the links that they cross.
// Sources: Thakur, Rabenseifner and Gropp, IJHPCA 19(1), 2005 (recursive doubling, ring);
// Patarasuk and Yuan, JPDC 69(2), 2009 (the ring all-reduce moves the least bytes possible).
#pragma once

#include "regatta/base/core/units.h"

namespace regatta::cost {

// Up to this many bytes a collective avoids the ring; collective/internal/choose.h uses it.
inline constexpr long long kSmallMessageBytes = 16 << 10;

// Cost of one collective for one rank: `steps` latencies one after the other, `bytes` sent.
struct CollectiveCost {
  int steps = 0;
  double bytes = 0;
};

// The share of a buffer that each of `ranks` >= 1 sends when every part of it passes all ranks
// once, as in a reduce-scatter or an all-gather: (p - 1) / p, the least of any algorithm. An
// all-reduce is two such passes. It is the factor of busbw over algbw for one pass (nccl-tests,
// doc/PERFORMANCE.md).
// Source: Patarasuk and Yuan.
constexpr double pass_share(double ranks) {
  return (ranks - 1) / ranks;
}

// All-reduce of `size` bytes per rank over `world_size` >= 1 ranks. Ring: 2 (p - 1) steps and
// 2 (p - 1) / p size; small messages: ceil(log2 p) steps of the whole message, very small ones (p -
// 1 times the size is still small): every rank sends to all others in one step.
CollectiveCost all_reduce_cost(Bytes size, int world_size);

// Reduce-scatter of `size` bytes of input per rank, or all-gather of `size` bytes of output:
// (p - 1) steps and (p - 1) / p size.
CollectiveCost reduce_scatter_cost(Bytes size, int world_size);

// The period of CFS bandwidth control in the lab (os/process.h).
inline constexpr Seconds kCfsPeriod{0.01};

// CFS gives a rank with `cpu_share` of a core one slice in each period and stops it for the rest,
// at times that differ between ranks. The delay of the last of `ranks` at a collective over their
// mean: the largest of as many uniform pauses of at most (1 - share) of a period, less their mean.
// 0 for one rank and for a share of 0 (not known) or 1.
Seconds cpu_throttling_wait(double cpu_share, int ranks);

}  // namespace regatta::cost
