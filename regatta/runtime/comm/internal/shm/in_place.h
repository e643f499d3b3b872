// comm/internal/shm/in_place.h: collectives between buffers that all ranks of the server can access
// (SharedSegment's buffers): without stages, every input byte is read once and every output byte
// written once.
//   all_reduce, reduce   rank k reduces the k-th part of all inputs and writes it to all outputs
//   the others           each rank reads its results from the others' inputs
// Bound: n S bytes read and n S written by the n ranks together (all_reduce of S bytes).
#pragma once

#include "regatta/model/collective/call.h"
#include "regatta/runtime/comm/internal/collective_names.h"
#include "regatta/runtime/comm/internal/shm/shm_peers.h"

namespace regatta::comm {

// The buffers that a rank announces: offsets, kPrivate, or 0 where the call has no such buffer.
struct BufferOffsets {
  std::uint64_t in = kPrivate;
  std::uint64_t out = kPrivate;

  bool are_shown() const { return in != kPrivate && out != kPrivate; }
};

// Moves an input that overlaps its own result elsewhere to its place in the result.
void settle_input(Call& call, const ShmPeers& peers);

// The buffers of the call that this rank can announce; none where a rank would write bytes that
// others still read.
BufferOffsets show_buffers(const Call& call, const ShmPeers& peers,
                           const SharedSegment& shared_segment);

// The whole work of one rank; `offsets` by rank of the group. All ranks have entered the call, and
// none returns from it before all have done this.
void run_in_place(const Call& call, const ShmPeers& peers,
                  const std::vector<BufferOffsets>& offsets);

}  // namespace regatta::comm
