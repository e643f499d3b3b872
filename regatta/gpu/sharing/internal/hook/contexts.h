// sharing/internal/hook/contexts.h: what the files about contexts share.
#pragma once

#include <functional>
#include <vector>

#include "regatta/gpu/sharing/internal/hook/driver.h"
#include "regatta/gpu/sharing/internal/hook/memory.h"
#include "regatta/gpu/sharing/internal/ledger/ledger.h"

namespace regatta::sharing::hook {

inline bool is_known(CUdevice device) {
  return device >= 0 && device < REGATTA_DEVICES_MAX;
}

// Asks the driver by `ask` for something that takes memory of its own; `undo` it when that is more
// than the tenant may have.
CUresult ask_for_context(CUdevice device, const std::function<CUresult()>& ask,
                         const std::function<void()>& undo);
// Destroys a context by `ask`, and forgets what was allocated in it when `is_gone()` says that it
// is.
CUresult end_context(CUcontext context, CUdevice device, const std::function<CUresult()>& ask,
                     const std::function<bool()>& is_gone);
// Before a context ends: its address may be the next one's. Its device, or -1.
CUdevice forget_context(CUcontext context);
// What the driver freed with a context.
void forget_allocations(const std::vector<Allocation>& had, CUdevice device);

// contexts_primary.cc. Null: the device has none now. One that nobody was seen to retain is found
// by retaining it.
CUcontext primary_context(CUdevice device);
// Whether it was seen before; asks no driver.
bool is_known_primary(const DeviceContext& place);

}  // namespace regatta::sharing::hook
