// Primary contexts: each device has at most one, which libraries share. It lives while somebody
// retains it.
#include <array>
#include <utility>

#include "regatta/base/core/ids.h"
#include "regatta/base/core/mutex.h"
#include "regatta/gpu/sharing/internal/hook/contexts.h"
#include "regatta/gpu/sharing/internal/hook/exports.h"
#include "regatta/gpu/sharing/internal/hook/launch_gate.h"
#include "regatta/gpu/sharing/internal/hook/swap.h"

namespace regatta::sharing::hook {
namespace {

struct PrimaryState {
  Mutex mutex;
  std::array<CUcontext, REGATTA_DEVICES_MAX> primaries REGATTA_GUARDED_BY(mutex){};
};
PrimaryState& primary_state() {
  static auto* const only = new PrimaryState;
  return *only;
}

bool is_primary_gone(CUdevice device) {
  unsigned flags = 0;
  int is_active = 1;
  return driver<DriverEntry::cuDevicePrimaryCtxGetState>()(device, &flags, &is_active) ==
             CUDA_SUCCESS &&
         is_active == 0;
}

// The primary context has ended.
CUcontext forget_primary(CUdevice device) {
  CUcontext context = nullptr;
  {
    const MutexLock lock(primary_state().mutex);
    std::swap(context, primary_state().primaries[as_index(device)]);
  }
  forget_context(context);
  return context;
}

// Gives one reference back, and forgets what was in the context when that was the last.
CUresult give_up_primary(DriverFunction<DriverEntry::cuDevicePrimaryCtxRelease_v2> real,
                         CUdevice device) {
  const CUresult result = real(device);
  if (result != CUDA_SUCCESS || !is_primary_gone(device)) return result;
  CUcontext context = forget_primary(device);
  if (context == nullptr) return result;
  free_swappable_of(context);
  forget_allocations(allocations().extract_of(context), device);
  return result;
}

}  // namespace

CUcontext primary_context(CUdevice device) {
  const auto at = static_cast<std::size_t>(device);
  {
    const MutexLock lock(primary_state().mutex);
    if (primary_state().primaries[at] != nullptr) return primary_state().primaries[at];
  }
  CUcontext found = nullptr;
  if (is_primary_gone(device) ||
      driver<DriverEntry::cuDevicePrimaryCtxRetain>()(&found, device) != CUDA_SUCCESS)
    return nullptr;
  {
    const MutexLock lock(primary_state().mutex);
    primary_state().primaries[at] = found;
  }
  // Others may have released it meanwhile: then it ends here.
  return give_up_primary(driver<DriverEntry::cuDevicePrimaryCtxRelease_v2>(), device) ==
                     CUDA_SUCCESS &&
                 is_primary_gone(device)
             ? nullptr
             : found;
}

std::vector<DeviceContext> known_primaries() {
  std::vector<DeviceContext> all;
  const MutexLock lock(primary_state().mutex);
  for (int device = 0; device < REGATTA_DEVICES_MAX; ++device)
    if (primary_state().primaries[as_index(device)] != nullptr)
      all.push_back({primary_state().primaries[as_index(device)], device});
  return all;
}

bool is_known_primary(const DeviceContext& place) {
  const MutexLock lock(primary_state().mutex);
  return primary_state().primaries[as_index(place.device)] == place.context;
}

CUresult retain_primary(DriverFunction<DriverEntry::cuDevicePrimaryCtxRetain> real,
                        CUcontext* context, CUdevice device) {
  const CUresult result =
      is_known(device) && is_primary_gone(device)
          ? begin_context(
                context, device, [&] { return real(context, device); },
                [&] { driver<DriverEntry::cuDevicePrimaryCtxRelease_v2>()(device); })
          : real(context, device);
  if (result != CUDA_SUCCESS || !is_known(device)) return result;
  const MutexLock lock(primary_state().mutex);
  primary_state().primaries[as_index(device)] = *context;
  return result;
}

CUresult release_primary(DriverFunction<DriverEntry::cuDevicePrimaryCtxRelease_v2> real,
                         CUdevice device) {
  if (!is_known(device)) return real(device);
  leave_context(primary_context(device));
  return give_up_primary(real, device);
}

CUresult reset_primary(DriverFunction<DriverEntry::cuDevicePrimaryCtxReset_v2> real,
                       CUdevice device) {
  if (!is_known(device)) return real(device);
  CUcontext const context = primary_context(device);
  if (context == nullptr) return real(device);
  const CUresult result = end_context(
      context, device, [&] { return real(device); }, [&] { return is_primary_gone(device); });
  if (result == CUDA_SUCCESS && is_primary_gone(device)) forget_primary(device);
  return result;
}

}  // namespace regatta::sharing::hook
