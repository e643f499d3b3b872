// Functions of before CUDA 4 that drivers still export under the names without a version. Those
// that take or give addresses of device memory know 32 bits of them and are refused; the others
// count as the newer ones do.
#include <algorithm>
#include <cstdio>

#include "regatta/gpu/sharing/internal/hook/exports.h"
#include "regatta/gpu/sharing/internal/hook/launch_gate.h"
#include "regatta/gpu/sharing/internal/hook/memory.h"
#include "regatta/gpu/sharing/internal/hook/report.h"

namespace regatta::sharing::hook {
namespace {

constexpr std::uint64_t kMost = ~0U;

}  // namespace

CUresult refuse(const char* symbol, const char* why) {
  char text[200];
  std::snprintf(text, sizeof text, "%s: %s; the call is refused", symbol, why);
  report(text);
  return CUDA_ERROR_NOT_SUPPORTED;
}

// Not by the newer function, which the driver refuses in a context of the first version.
CUresult show_memory(DriverFunction<DriverEntry::cuMemGetInfo> real, unsigned* free,
                     unsigned* total) {
  unsigned there = 0;
  unsigned whole = 0;
  const CUresult result = real(&there, &whole);
  if (result != CUDA_SUCCESS) return result;
  MemoryView view{.total_bytes = whole, .free_bytes = there};
  if (const auto place = current_device_context()) {
    account_context(*place);
    view = tenant_view(place->device, view);
  }
  if (free != nullptr) *free = static_cast<unsigned>(std::min(view.free_bytes, kMost));
  if (total != nullptr) *total = static_cast<unsigned>(std::min(view.total_bytes, kMost));
  return result;
}

CUresult show_total(DriverFunction<DriverEntry::cuDeviceTotalMem> real, unsigned* bytes,
                    CUdevice device) {
  const CUresult result = real(bytes, device);
  if (result != CUDA_SUCCESS || bytes == nullptr ||
      driver<DriverEntry::cuDeviceTotalMem_v2>() == nullptr)
    return result;
  std::size_t wide = 0;
  const CUresult shown = show_total(driver<DriverEntry::cuDeviceTotalMem_v2>(), &wide, device);
  if (shown == CUDA_SUCCESS) *bytes = static_cast<unsigned>(std::min(wide, kMost));
  return shown;
}

CUresult launch(DriverFunction<DriverEntry::cuLaunch> real, CUfunction function) {
  return pass_gate(KernelDurations::key_of(function, 1), nullptr, [&] { return real(function); });
}

CUresult launch(DriverFunction<DriverEntry::cuLaunchGrid> real, CUfunction function, int width,
                int height) {
  const auto blocks = static_cast<std::uint64_t>(width) * static_cast<std::uint64_t>(height);
  return pass_gate(KernelDurations::key_of(function, blocks), nullptr,
                   [&] { return real(function, width, height); });
}

CUresult launch(DriverFunction<DriverEntry::cuLaunchGridAsync> real, CUfunction function, int width,
                int height, CUstream stream) {
  const auto blocks = static_cast<std::uint64_t>(width) * static_cast<std::uint64_t>(height);
  return pass_gate(KernelDurations::key_of(function, blocks), stream,
                   [&] { return real(function, width, height, stream); });
}

// On several devices at once it would have to wait for the turns of all of them.
CUresult launch(DriverFunction<DriverEntry::cuLaunchCooperativeKernelMultiDevice> real,
                CUDA_LAUNCH_PARAMS* launches, unsigned devices, unsigned flags) {
  if (launches == nullptr || devices == 0) return real(launches, devices, flags);
  if (devices > 1)
    return refuse("cuLaunchCooperativeKernelMultiDevice",
                  "launches on several devices cannot wait for the turns of each");
  const std::uint64_t blocks =
      std::uint64_t{launches->gridDimX} * launches->gridDimY * launches->gridDimZ;
  return pass_gate(KernelDurations::key_of(launches->function, blocks), launches->hStream,
                   [&] { return real(launches, devices, flags); });
}

}  // namespace regatta::sharing::hook
