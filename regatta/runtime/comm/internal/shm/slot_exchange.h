// comm/internal/shm/slot_exchange.h: the smallest collectives: every rank shows its whole input in
// a slot, and each computes its result from all slots. One step; a rank reads (n-1) x S bytes.
#pragma once

#include "regatta/model/collective/call.h"
#include "regatta/runtime/comm/internal/collective_names.h"
#include "regatta/runtime/comm/internal/shm/shm_peers.h"

namespace regatta::comm {

// Whether the call's input fits in a slot; the same on all ranks.
bool fits_slot(const Call& call, int ranks);

// Before the rank says that it has entered the call; `slot` in [0, kSlots).
void write_slot(const Call& call, const ShmPeers& peers, unsigned slot);
// While the call waits: the next one will probably show as much in `slot`, whose readers have all
// done with it, so its lines are fetched for writing now.
void prefetch_slot(const Call& call, const ShmPeers& peers, unsigned slot);
// After all ranks have entered it.
void reduce_slots(const Call& call, const ShmPeers& peers, unsigned slot);

}  // namespace regatta::comm
