// comm/internal/shm/slot_exchange.h: the smallest collectives: every rank writes its whole input to
// a slot, and each computes its result from all slots. One step; a rank reads (n-1) x S bytes.
#pragma once

#include "regatta/model/collective/call.h"
#include "regatta/runtime/comm/internal/collective_names.h"
#include "regatta/runtime/comm/internal/shm/shm_peers.h"

namespace regatta::comm {

// Whether the call's input fits in a slot; the same on all ranks.
bool fits_slot(const Call& call, int ranks);

// Before the rank announces the call; `slot` in [0, kSlots).
void write_slot(const Call& call, const ShmPeers& peers, unsigned slot);
// While the call waits: fetches the lines of `slot` for writing. The next call will probably write
// as much there, and no rank reads the slot any more.
void prefetch_slot(const Call& call, const ShmPeers& peers, unsigned slot);
// After all ranks have entered it.
void reduce_slots(const Call& call, const ShmPeers& peers, unsigned slot);

}  // namespace regatta::comm
