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

// Memory of contexts and modules, which is measured as what NVML reports of the process and nothing
// else accounts for. Before a call that takes up to `most` bytes; none: the tenant may not have
// them.
std::optional<DriverReportedUsage::Call> begin_uncounted(CUdevice device, std::uint64_t most);
// After it.
DriverReportedUsage::Outcome settle_uncounted(CUdevice device,
                                              const DriverReportedUsage::Call& call);
// After one that took no more than was expected: counted so until the next measurement. False:
// settle it.
bool complete_uncounted(CUdevice device, const DriverReportedUsage::Call& call);
// A measurement takes time; so long after the last one, or after one that found too much.
bool is_measurement_due(CUdevice device);
// After something that gave such memory back, in the current context.
bool settle_here();
// Those that this process is known to have; they may have ended since.
std::vector<DeviceContext> known_contexts();
std::vector<DeviceContext> known_primaries();  // contexts_primary.cc
// exports_libraries.cc: what is placed into each context that is made. False: it has no room.
bool place_libraries(const DeviceContext& place);
void forget_placed(CUcontext context);  // it ends

// Calls the driver by `ask` for something that takes memory of its own; undoes it by `undo` when
// the tenant may not have that much.
CUresult begin_context(CUcontext* context, CUdevice device, const std::function<CUresult()>& ask,
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
