// Addresses: attributes of pointers, host memory of the program's own, managed memory.
#include <algorithm>
#include <cstring>

#include <sys/mman.h>

#include "tests/standin/api.h"
#include "tests/standin/process.h"

using namespace regatta::standin;

namespace {

using Regions = std::map<CUdeviceptr, Region>;

template <typename Value>
CUresult give(void* data, Value value) {
  std::memcpy(data, &value, sizeof value);
  return CUDA_SUCCESS;
}

bool is_host(const Region& region) {
  return region.kind == RegionKind::kHost || region.kind == RegionKind::kRegistered;
}

// Attributes of the memory and not of its owner.
CUresult range_attribute(void* data, int attribute, const Regions::value_type& entry) {
  const auto& [base, region] = entry;
  switch (attribute) {
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
      return give(data, region.syncs ? 1 : 0);
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
    case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID:
      return give(data, region.id);
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
    case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR:
      return give(data, base);
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
    case CU_POINTER_ATTRIBUTE_MAPPING_SIZE:
      return give(data, static_cast<std::size_t>(region.bytes));
    case CU_POINTER_ATTRIBUTE_MAPPED:
      return give(data, 1);
    case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
      return give(data, static_cast<std::uint64_t>(region.handle_types));
    case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
      return give(data, region.is_accessible ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE : 0U);
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
      return give(data, region.pool);
    case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
      return give(data, 0);
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
}

CUresult attribute_of(void* data, int attribute, CUdeviceptr address,
                      const Regions::value_type& entry) {
  const Region& region = entry.second;
  const bool is_managed = region.kind == RegionKind::kManaged;
  switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
      return give(data, region.context);
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
      return give(data, is_host(region) ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE);
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
      return give(data, address);
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
      if (!is_host(region) && !is_managed) return CUDA_ERROR_INVALID_VALUE;
      return give(data, address);
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
      return give(data, is_managed);
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
      return give(data, region.device->ordinal);
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
      return give(data, region.kind == RegionKind::kDevice ? 1 : 0);
    default:
      return range_attribute(data, attribute, entry);
  }
}

// Attributes of unknown pointers: the bytes of an attribute without a value.
std::size_t attribute_bytes(int attribute) {
  switch (attribute) {
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
    case CU_POINTER_ATTRIBUTE_MAPPED:
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
    case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
    case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
      return 4;
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
      return 1;
    default:
      return 8;
  }
}

// Every part of it managed.
CUresult find_managed(CUdeviceptr address, std::size_t bytes, Regions::iterator* region) {
  *region = region_of(address);
  if (*region == process().regions.end() || (*region)->second.kind != RegionKind::kManaged ||
      bytes == 0 || address + bytes > (*region)->first + (*region)->second.bytes)
    return CUDA_ERROR_INVALID_VALUE;
  return CUDA_SUCCESS;
}

CUresult check_place(int place) {
  return place == CU_DEVICE_CPU ||
                 (place >= 0 && static_cast<std::size_t>(place) < process().devices.size())
             ? CUDA_SUCCESS
             : CUDA_ERROR_INVALID_DEVICE;
}

// Those of the host and its NUMA nodes are the CPU.
CUresult place_of(CUmemLocation location, int* place) {
  if (location.type < CU_MEM_LOCATION_TYPE_DEVICE || location.type > 4)
    return CUDA_ERROR_INVALID_VALUE;
  *place = location.type == CU_MEM_LOCATION_TYPE_DEVICE ? location.id : CU_DEVICE_CPU;
  return CUDA_SUCCESS;
}

CUresult prefetch(CUdeviceptr address, std::size_t bytes, int place, CUstream stream) {
  {
    const std::lock_guard lock(process().mutex);
    CUcontext context = nullptr;
    if (const CUresult result = current_context(&context); result != CUDA_SUCCESS) return result;
    Regions::iterator region;
    CUresult result = find_managed(address, bytes, &region);
    if (result == CUDA_SUCCESS) result = check_place(place);
    if (result != CUDA_SUCCESS) return result;
    region->second.managed.prefetched = place;
  }
  return enqueue(stream, {.kind = OpKind::kCopy,
                          .engine = place == CU_DEVICE_CPU ? Engine::kToHost : Engine::kToDevice,
                          .bytes = bytes});
}

CUresult advise(CUdeviceptr address, std::size_t bytes, int advice, int place) {
  const std::lock_guard lock(process().mutex);
  Regions::iterator region;
  CUresult result = find_managed(address, bytes, &region);
  if (result == CUDA_SUCCESS && advice >= 3) result = check_place(place);
  if (result != CUDA_SUCCESS) return result;
  Managed& managed = region->second.managed;
  switch (advice) {
    case 1:  // mostly read, and no longer
    case 2:
      managed.is_read_mostly = advice == 1;
      return CUDA_SUCCESS;
    case 3:  // preferred there, and nowhere
    case 4:
      managed.preferred = advice == 3 ? place : CU_DEVICE_INVALID;
      return CUDA_SUCCESS;
    case 5:  // accessed by it, and no longer
    case 6:
      std::erase(managed.accessed_by, place);
      if (advice == 5) managed.accessed_by.push_back(place);
      return CUDA_SUCCESS;
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
}

}  // namespace

// NOLINTBEGIN(readability-identifier-naming): the names are the driver's
extern "C" {

CUresult cuPointerGetAttribute(void* data, int attribute, CUdeviceptr address) {
  if (data == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const std::lock_guard lock(process().mutex);
  const auto at = region_of(address);
  return at == process().regions.end() ? CUDA_ERROR_INVALID_VALUE
                                       : attribute_of(data, attribute, address, *at);
}

// For an unknown pointer, and where an attribute has no value, all is 0.
CUresult cuPointerGetAttributes(unsigned count, int* attributes, void** data, CUdeviceptr address) {
  if (count == 0 || attributes == nullptr || data == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const std::lock_guard lock(process().mutex);
  const auto at = region_of(address);
  for (unsigned i = 0; i < count; ++i) {
    std::memset(data[i], 0, attribute_bytes(attributes[i]));
    if (at != process().regions.end())
      attribute_of(data[i], attributes[i], address, *at);
    else if (attributes[i] == CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL)
      give(data[i], CU_DEVICE_INVALID);
  }
  return CUDA_SUCCESS;
}

CUresult cuPointerSetAttribute(const void* value, int attribute, CUdeviceptr address) {
  const std::lock_guard lock(process().mutex);
  const auto at = region_of(address);
  if (value == nullptr || attribute != CU_POINTER_ATTRIBUTE_SYNC_MEMOPS ||
      at == process().regions.end())
    return CUDA_ERROR_INVALID_VALUE;
  at->second.syncs = *static_cast<const unsigned*>(value) != 0;
  return CUDA_SUCCESS;
}

CUresult cuMemHostRegister_v2(void* memory, std::size_t bytes, unsigned flags) {
  if (memory == nullptr || bytes == 0 || flags > 15) return CUDA_ERROR_INVALID_VALUE;
  const std::lock_guard lock(process().mutex);
  CUcontext context = nullptr;
  if (const CUresult result = current_context(&context); result != CUDA_SUCCESS) return result;
  const auto address = reinterpret_cast<CUdeviceptr>(memory);
  const auto next = process().regions.lower_bound(address);
  if (region_of(address) != process().regions.end() ||
      (next != process().regions.end() && next->first < address + bytes))
    return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
  process().regions[address] = {.kind = RegionKind::kRegistered,
                                .id = ++process().last_id,
                                .bytes = bytes,
                                .context = context,
                                .device = context->device,
                                .flags = flags};
  return CUDA_SUCCESS;
}

CUresult cuMemHostUnregister(void* memory) {
  const std::lock_guard lock(process().mutex);
  const auto at = process().regions.find(reinterpret_cast<CUdeviceptr>(memory));
  if (at == process().regions.end() || at->second.kind != RegionKind::kRegistered)
    return CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
  free_region(at);
  return CUDA_SUCCESS;
}

CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr* address, void* memory, unsigned flags) {
  const std::lock_guard lock(process().mutex);
  const auto own = reinterpret_cast<CUdeviceptr>(memory);
  const auto at = region_of(own);
  if (address == nullptr || flags != 0 || at == process().regions.end() || !is_host(at->second))
    return CUDA_ERROR_INVALID_VALUE;
  *address = own;
  return CUDA_SUCCESS;
}

CUresult cuMemHostGetFlags(unsigned* flags, void* memory) {
  const std::lock_guard lock(process().mutex);
  const auto at = region_of(reinterpret_cast<CUdeviceptr>(memory));
  if (flags == nullptr || at == process().regions.end() || !is_host(at->second))
    return CUDA_ERROR_INVALID_VALUE;
  *flags = at->second.flags;
  return CUDA_SUCCESS;
}

CUresult cuMemPrefetchAsync(CUdeviceptr address, std::size_t bytes, CUdevice place,
                            CUstream stream) {
  return prefetch(address, bytes, place, stream);
}
CUresult cuMemPrefetchAsync_v2(CUdeviceptr address, std::size_t bytes, CUmemLocation location,
                               unsigned flags, CUstream stream) {
  int place = 0;
  if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
  const CUresult result = place_of(location, &place);
  return result == CUDA_SUCCESS ? prefetch(address, bytes, place, stream) : result;
}

CUresult cuMemAdvise(CUdeviceptr address, std::size_t bytes, int advice, CUdevice place) {
  return advise(address, bytes, advice, place);
}
CUresult cuMemAdvise_v2(CUdeviceptr address, std::size_t bytes, int advice,
                        CUmemLocation location) {
  int place = CU_DEVICE_CPU;
  const CUresult result = advice >= 3 ? place_of(location, &place) : CUDA_SUCCESS;
  return result == CUDA_SUCCESS ? advise(address, bytes, advice, place) : result;
}

CUresult cuMemRangeGetAttribute(void* data, std::size_t data_bytes, int attribute,
                                CUdeviceptr address, std::size_t bytes) {
  const std::lock_guard lock(process().mutex);
  if (data == nullptr || data_bytes < 4 || data_bytes % 4 != 0) return CUDA_ERROR_INVALID_VALUE;
  Regions::iterator region;
  if (const CUresult result = find_managed(address, bytes, &region); result != CUDA_SUCCESS)
    return result;
  const Managed& managed = region->second.managed;
  switch (attribute) {
    case 1:
      return give(data, managed.is_read_mostly ? 1 : 0);
    case 2:
      return give(data, managed.preferred);
    case 3:
      for (std::size_t i = 0; i < data_bytes / 4; ++i)
        give(static_cast<int*>(data) + i,
             i < managed.accessed_by.size() ? managed.accessed_by[i] : CU_DEVICE_INVALID);
      return CUDA_SUCCESS;
    case 4:
      return give(data, managed.prefetched);
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
}

}  // extern "C"
// NOLINTEND(readability-identifier-naming)
