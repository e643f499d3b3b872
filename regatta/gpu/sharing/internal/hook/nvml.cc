#include "regatta/gpu/sharing/internal/hook/nvml.h"

#include <array>
#include <atomic>
#include <cstdio>
#include <vector>

#include <unistd.h>

#include "regatta/base/core/ids.h"
#include "regatta/gpu/sharing/internal/hook/exports.h"
#include "regatta/gpu/sharing/internal/hook/tenant.h"
#include "regatta/gpu/sharing/internal/ledger/ledger.h"

namespace regatta::sharing::hook {
namespace {

// NVML's handle of the device that the driver calls by this number; null without one.
nvmlDevice_t device_of(int device) {
  static std::array<std::atomic<nvmlDevice_t>, REGATTA_DEVICES_MAX> known{};
  static const bool is_started = driver<DriverEntry::nvmlInit_v2>() != nullptr &&
                                 driver<DriverEntry::nvmlInit_v2>()() == NVML_SUCCESS;
  if (!is_started) return nullptr;
  auto& entry = known[as_index(device)];
  if (nvmlDevice_t const found = entry.load()) return found;
  CUuuid id{};
  if (driver<DriverEntry::cuDeviceGetUuid>()(&id, device) != CUDA_SUCCESS) return nullptr;
  char text[48] = "GPU-";
  std::size_t at = 4;
  for (std::size_t i = 0; i < sizeof id.bytes; ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text[at++] = '-';
    std::snprintf(text + at, sizeof text - at, "%02x", static_cast<unsigned char>(id.bytes[i]));
    at += 2;
  }
  nvmlDevice_t found = nullptr;
  if (driver<DriverEntry::nvmlDeviceGetHandleByUUID>()(text, &found) != NVML_SUCCESS)
    return nullptr;
  entry = found;
  return found;
}

template <typename Memory>
void show_tenant(Memory& memory, nvmlDevice_t device) {
  unsigned index = 0;
  auto* const get_index = driver<DriverEntry::nvmlDeviceGetIndex>();
  if (get_index == nullptr || get_index(device, &index) != NVML_SUCCESS) return;
  const MemoryView view = tenant_view(static_cast<int>(index), {memory.total, memory.free});
  memory.total = view.total_bytes;
  memory.free = view.free_bytes;
  memory.used = view.total_bytes - view.free_bytes;
}

}  // namespace

std::optional<std::uint64_t> process_bytes(int device) {
  nvmlDevice_t const handle = device_of(device);
  auto* const list = driver<DriverEntry::nvmlDeviceGetComputeRunningProcesses_v3>();
  if (handle == nullptr || list == nullptr) return std::nullopt;
  std::vector<nvmlProcessInfo_t> processes(64);
  auto count = static_cast<unsigned>(processes.size());
  nvmlReturn_t result = list(handle, &count, processes.data());
  while (result == NVML_ERROR_INSUFFICIENT_SIZE) {
    processes.resize(count + 64);
    count = static_cast<unsigned>(processes.size());
    result = list(handle, &count, processes.data());
  }
  if (result != NVML_SUCCESS) return std::nullopt;
  // Where processes have other numbers than here ours is never there; where it has been, it is not
  // listed when it has no context any more.
  static std::atomic<bool> has_been_listed = false;
  for (unsigned i = 0; i < count; ++i) {
    if (processes[i].pid != static_cast<unsigned>(::getpid())) continue;
    if (processes[i].usedGpuMemory == NVML_VALUE_NOT_AVAILABLE) return std::nullopt;
    has_been_listed = true;
    return processes[i].usedGpuMemory;
  }
  if (has_been_listed) return 0;
  return std::nullopt;
}

nvmlReturn_t show_nvml_memory(DriverFunction<DriverEntry::nvmlDeviceGetMemoryInfo> real,
                              nvmlDevice_t device, nvmlMemory_t* memory) {
  const nvmlReturn_t result = real(device, memory);
  if (result == NVML_SUCCESS) show_tenant(*memory, device);
  return result;
}

nvmlReturn_t show_nvml_memory(DriverFunction<DriverEntry::nvmlDeviceGetMemoryInfo_v2> real,
                              nvmlDevice_t device, nvmlMemory_v2_t* memory) {
  const nvmlReturn_t result = real(device, memory);
  if (result != NVML_SUCCESS) return result;
  memory->reserved = 0;  // of the whole device, not of the tenant
  show_tenant(*memory, device);
  return result;
}

}  // namespace regatta::sharing::hook
