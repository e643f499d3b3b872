// sharing/internal/hook/contexts.h: accounting shared by the files about contexts.
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

// Calls the driver by `ask` for something that takes memory of its own; undoes it by `undo` when
// the tenant may not have that much.
CUresult begin_context(CUdevice device, const std::function<CUresult()>& ask,
                       const std::function<void()>& undo);
// Destroys a context by `ask`, and forgets its allocations when `is_gone()`.
CUresult end_context(CUcontext context, CUdevice device, const std::function<CUresult()>& ask,
                     const std::function<bool()>& is_gone);
// Call before a context ends, because the next one may get its address. Returns its device, or -1.
CUdevice forget_context(CUcontext context);
// Memory that the driver freed with a context.
void forget_allocations(const std::vector<Allocation>& had, CUdevice device);

// contexts_primary.cc. Null: the device has none now. A context that was retained unseen is found
// by retaining it.
CUcontext primary_context(CUdevice device);
// Whether it is known; does not call the driver.
bool is_known_primary(const DeviceContext& place);

}  // namespace regatta::sharing::hook
