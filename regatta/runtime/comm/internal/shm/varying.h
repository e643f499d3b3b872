// comm/internal/shm/varying.h: collectives whose parts vary, inside a server. Every rank shows in
// its slot how long its part for each other rank is and where it lies, so that a reader knows what
// it gets before it takes it. The parts lie
//   in the slot      where the table leaves room for all of them,
//   in place         where the input is memory that the others reach (SharedSegment's buffers),
//   else in the stages    in rounds: the parts one after the other are a stream; a round shows
//                    kStageBytes of it. It begins with the next rank, so that in one round each
//                    reads from another, and a long part takes no more rounds than its bytes ask.
// Bytes: a rank copies what it gives once (not in place) and what it takes once.
#pragma once

#include <cstdint>

#include "regatta/model/collective/call.h"
#include "regatta/runtime/comm/internal/collective_names.h"
#include "regatta/runtime/comm/internal/shm/shm_peers.h"
#include "regatta/runtime/comm/internal/shm/staged.h"

namespace regatta::comm {

// What the post tells beside the table.
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

// All ranks have shown: how many rounds it takes, the same on all of them; 0 when all lies in the
// slots, which collect_parts() takes.
Staged plan_varying(const Call& call, const ShmPeers& peers, unsigned slot, StoreMode stage);
void fill_varying(const Staged& staged, const ShmPeers& peers, std::uint64_t round, unsigned stage);
void combine_varying(const Staged& staged, const ShmPeers& peers, std::uint64_t round,
                     unsigned stage);
void collect_parts(const Staged& staged, const ShmPeers& peers);
// After the last round: reduces what came, where the call asks for it.
void end_varying(const Call& call, const ShmPeers& peers);

}  // namespace regatta::comm
