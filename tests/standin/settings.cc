// Limits and other settings of contexts, names of devices on their bus, and peers.
#include <cstdio>
#include <map>

#include "tests/standin/api.h"
#include "tests/standin/process.h"

using namespace regatta::standin;

namespace {

// Bytes or counts, as a GPU of compute capability 9.0 starts with: of a thread's stack, of what
// kernels print, of the device's heap, of nested waits and launches, of fetches and the cache.
const std::map<int, std::size_t> kLimits = {{0, 1024}, {1, 8 << 20}, {2, 8 << 20}, {3, 2},
                                            {4, 2048}, {5, 64},      {6, 0}};
constexpr int kGreatestPriority = -5;

// Under the lock.
bool is_device(CUdevice number) {
  return number >= 0 && static_cast<std::size_t>(number) < process().devices.size();
}

CUresult check_devices(const void* target, CUdevice first, CUdevice second) {
  if (!process().is_started) return CUDA_ERROR_NOT_INITIALIZED;
  if (target == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return is_device(first) && is_device(second) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

CUresult find_pair(CUcontext peer, CUcontext* context) {
  if (const CUresult result = current_context(context); result != CUDA_SUCCESS) return result;
  return process().contexts.contains(peer) && peer->device != (*context)->device
             ? CUDA_SUCCESS
             : CUDA_ERROR_INVALID_CONTEXT;
}

}  // namespace

namespace regatta::standin {

int clamp_priority(int priority) {
  return priority > 0 ? 0 : priority < kGreatestPriority ? kGreatestPriority : priority;
}

}  // namespace regatta::standin

// NOLINTBEGIN(readability-identifier-naming): the names are the driver's
extern "C" {

CUresult cuDeviceComputeCapability(int* major, int* minor, CUdevice number) {
  const std::lock_guard lock(process().mutex);
  if (const CUresult result = check_devices(major, number, number); result != CUDA_SUCCESS)
    return result;
  if (minor == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *major = 9;
  *minor = 0;
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetPCIBusId(char* id, int size, CUdevice number) {
  const std::lock_guard lock(process().mutex);
  if (const CUresult result = check_devices(id, number, number); result != CUDA_SUCCESS)
    return result;
  if (size < 13) return CUDA_ERROR_INVALID_VALUE;
  std::snprintf(id, static_cast<std::size_t>(size), "0000:%02X:00.0",
                static_cast<unsigned>(number + 1) & 0xffU);
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetByPCIBusId(CUdevice* number, const char* id) {
  const std::lock_guard lock(process().mutex);
  if (!process().is_started) return CUDA_ERROR_NOT_INITIALIZED;
  if (number == nullptr || id == nullptr) return CUDA_ERROR_INVALID_VALUE;
  unsigned domain = 0;
  unsigned bus = 0;
  unsigned place = 0;
  if (std::sscanf(id, "%x:%x:%x", &domain, &bus, &place) != 3) {
    domain = 0;
    if (std::sscanf(id, "%x:%x", &bus, &place) != 2) return CUDA_ERROR_INVALID_VALUE;
  }
  const int found = static_cast<int>(bus) - 1;
  if (domain != 0 || place != 0 || !is_device(found)) return CUDA_ERROR_INVALID_DEVICE;
  *number = found;
  return CUDA_SUCCESS;
}

CUresult cuDeviceCanAccessPeer(int* can, CUdevice number, CUdevice peer) {
  const std::lock_guard lock(process().mutex);
  const CUresult result = check_devices(can, number, peer);
  if (result == CUDA_SUCCESS) *can = number == peer ? 0 : 1;
  return result;
}

// Performance, access, native atomics and arrays: the same between any two devices.
CUresult cuDeviceGetP2PAttribute(int* value, int attribute, CUdevice number, CUdevice peer) {
  const std::lock_guard lock(process().mutex);
  if (const CUresult result = check_devices(value, number, peer); result != CUDA_SUCCESS)
    return result;
  if (number == peer) return CUDA_ERROR_INVALID_DEVICE;
  if (attribute < 1 || attribute > 4) return CUDA_ERROR_INVALID_VALUE;
  *value = attribute == 1 ? 0 : 1;
  return CUDA_SUCCESS;
}

CUresult cuCtxGetStreamPriorityRange(int* least, int* greatest) {
  const std::lock_guard lock(process().mutex);
  CUcontext context = nullptr;
  if (const CUresult result = current_context(&context); result != CUDA_SUCCESS) return result;
  if (least != nullptr) *least = 0;
  if (greatest != nullptr) *greatest = kGreatestPriority;
  return CUDA_SUCCESS;
}

CUresult cuCtxGetLimit(std::size_t* value, int limit) {
  const std::lock_guard lock(process().mutex);
  CUcontext context = nullptr;
  if (const CUresult result = current_context(&context); result != CUDA_SUCCESS) return result;
  const auto known = kLimits.find(limit);
  if (value == nullptr || known == kLimits.end()) return CUDA_ERROR_INVALID_VALUE;
  const auto own = context->limits.find(limit);
  *value = own == context->limits.end() ? known->second : own->second;
  return CUDA_SUCCESS;
}

CUresult cuCtxSetLimit(int limit, std::size_t value) {
  const std::lock_guard lock(process().mutex);
  CUcontext context = nullptr;
  if (const CUresult result = current_context(&context); result != CUDA_SUCCESS) return result;
  if (!kLimits.contains(limit)) return CUDA_ERROR_INVALID_VALUE;
  context->limits[limit] = value;
  return CUDA_SUCCESS;
}

CUresult cuCtxGetApiVersion(CUcontext context, unsigned* version) {
  const std::lock_guard lock(process().mutex);
  if (version == nullptr) return CUDA_ERROR_INVALID_VALUE;
  CUcontext current = nullptr;
  if (context == nullptr) {
    if (const CUresult result = current_context(&current); result != CUDA_SUCCESS) return result;
  } else if (!process().contexts.contains(context)) {
    return CUDA_ERROR_INVALID_CONTEXT;
  }
  *version = 3020;
  return CUDA_SUCCESS;
}

CUresult cuCtxGetId(CUcontext context, unsigned long long* id) {
  const std::lock_guard lock(process().mutex);
  if (id == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (context == nullptr) {
    if (const CUresult result = current_context(&context); result != CUDA_SUCCESS) return result;
  } else if (!process().contexts.contains(context)) {
    return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  }
  *id = context->id;
  return CUDA_SUCCESS;
}

CUresult cuCtxGetCacheConfig(int* config) {
  const std::lock_guard lock(process().mutex);
  CUcontext context = nullptr;
  if (const CUresult result = current_context(&context); result != CUDA_SUCCESS) return result;
  if (config == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *config = context->cache_config;
  return CUDA_SUCCESS;
}

CUresult cuCtxSetCacheConfig(int config) {
  const std::lock_guard lock(process().mutex);
  CUcontext context = nullptr;
  if (const CUresult result = current_context(&context); result != CUDA_SUCCESS) return result;
  if (config < 0 || config > 3) return CUDA_ERROR_INVALID_VALUE;
  context->cache_config = config;
  return CUDA_SUCCESS;
}

CUresult cuCtxEnablePeerAccess(CUcontext peer, unsigned flags) {
  const std::lock_guard lock(process().mutex);
  CUcontext context = nullptr;
  if (const CUresult result = find_pair(peer, &context); result != CUDA_SUCCESS) return result;
  if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
  return context->peers.insert(peer).second ? CUDA_SUCCESS : CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED;
}

CUresult cuCtxDisablePeerAccess(CUcontext peer) {
  const std::lock_guard lock(process().mutex);
  CUcontext context = nullptr;
  if (const CUresult result = find_pair(peer, &context); result != CUDA_SUCCESS) return result;
  return context->peers.erase(peer) > 0 ? CUDA_SUCCESS : CUDA_ERROR_PEER_ACCESS_NOT_ENABLED;
}

}  // extern "C"
// NOLINTEND(readability-identifier-naming)
