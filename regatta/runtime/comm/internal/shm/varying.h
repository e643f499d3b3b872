// comm/internal/shm/varying.h: collectives whose parts vary, inside a server. Every rank writes a
// table to its slot: the length of its part for each other rank and its place, so that a reader
// knows both before it copies. The parts lie
//   in the slot      where the table leaves room for all of them,
//   in place         where the input is memory that the others map (SharedSegment's buffers),
//   else in the stages    in rounds: the parts one after the other are a stream; a round holds
//                    kStageBytes of it. It begins with the next rank, so that in one round each
//                    reads from another, and a long part takes no more rounds than its bytes need.
// A rank copies the bytes that it sends once (not in place) and those that it receives once.
#pragma once

#include <cstdint>

#include "regatta/model/collective/call.h"
#include "regatta/runtime/comm/internal/collective_names.h"
#include "regatta/runtime/comm/internal/shm/shm_peers.h"
#include "regatta/runtime/comm/internal/shm/staged.h"

namespace regatta::comm {

// The announcement beside the table.
struct ShownParts {
  std::uint64_t in = kPrivate;  // where the input begins in the buffers of the rank
  std::uint64_t stream_bytes = 0;
};
// Writes the table, and the parts where they fit.
ShownParts show_parts(const Call& call, const ShmPeers& peers, unsigned slot,
                      const SharedSegment& shared_segment);

// The first rank whose part for this one is not as long as this one takes; none: `peer` is -1.
struct PartMismatch {
  int peer = -1;
  std::uint64_t given = 0;
  std::uint64_t taken = 0;
};
PartMismatch find_mismatch(const Call& call, const ShmPeers& peers, unsigned slot);

// All ranks have announced their parts: the rounds are the same on all; 0 when all parts lie in the
// slots, which collect_parts() copies.
Staged plan_varying(const Call& call, const ShmPeers& peers, unsigned slot, StoreMode stage);
void fill_varying(const Staged& staged, const ShmPeers& peers, std::uint64_t round, unsigned stage);
void combine_varying(const Staged& staged, const ShmPeers& peers, std::uint64_t round,
                     unsigned stage);
void collect_parts(const Staged& staged, const ShmPeers& peers);
// After the last round: reduces the parts that arrived, where the call is a reduction.
void end_varying(const Call& call, const ShmPeers& peers);

}  // namespace regatta::comm
