// Memory of a device and of the host, and copies between them.
#include <algorithm>
#include <cstring>
#include <optional>

#include <sys/mman.h>

#include "tests/standin/api.h"
#include "tests/standin/graph.h"
#include "tests/standin/pool.h"
#include "tests/standin/process.h"

using namespace regatta::standin;

namespace regatta::standin {

namespace {
std::uint64_t whole_blocks(std::uint64_t bytes) {
  return (bytes + Arena::kBlock - 1) / Arena::kBlock * Arena::kBlock;
}
}  // namespace

void free_region(std::map<CUdeviceptr, Region>::iterator at) {
  const Region region = at->second;
  if (region.kind == RegionKind::kMapped || region.kind == RegionKind::kReserved) return;
  if (region.kind == RegionKind::kGraph) {
    free_graph_memory(at->first);
    return;
  }
  if (region.kind == RegionKind::kPool) {
    region.pool->free.push_back({region.offset, region.charged, nullptr, 0});
    region.pool->used -= region.charged;
    trim_pool(*region.pool, region.pool->threshold);
  } else if (region.kind != RegionKind::kHost && region.charged != 0) {
    region.device->arena.free(region.offset, region.charged);
  }
  if (region.kind != RegionKind::kDevice)
    munmap(reinterpret_cast<void*>(at->first), whole_blocks(region.bytes));
  process().regions.erase(at);
}

namespace {

// Memory of the host, at a multiple of a block: managed memory has blocks of its own.
void* map_host(std::size_t bytes) {
  const std::size_t whole = whole_blocks(bytes);
  void* const range = mmap(nullptr, whole + Arena::kBlock, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (range == MAP_FAILED) return nullptr;
  const auto begin = reinterpret_cast<std::uintptr_t>(range);
  const std::uintptr_t address = whole_blocks(begin);
  if (address > begin) munmap(range, address - begin);
  munmap(reinterpret_cast<void*>(address + whole), begin + Arena::kBlock - address);
  return reinterpret_cast<void*>(address);
}

// Addresses of device memory are nobody's to touch, as little as those of a real device.
CUresult make_region(CUcontext context, RegionKind kind, std::uint64_t bytes,
                     CUdeviceptr* address) {
  Arena& arena = context->device->arena;
  std::optional<std::uint64_t> offset;
  const std::uint64_t charged = kind == RegionKind::kManaged ? whole_blocks(bytes) : bytes;
  if (kind != RegionKind::kHost && charged >= bytes) offset = arena.allocate(charged);
  if (kind == RegionKind::kDevice && !offset) return CUDA_ERROR_OUT_OF_MEMORY;
  if (kind == RegionKind::kDevice) {
    *address = arena.address(*offset);
  } else {
    void* const range = charged < bytes ? nullptr : map_host(bytes);
    if (range == nullptr) {
      if (offset) arena.free(*offset, charged);
      return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *address = reinterpret_cast<CUdeviceptr>(range);
  }
  process().regions[*address] = {.kind = kind,
                                 .bytes = bytes,
                                 .context = context,
                                 .device = context->device,
                                 .offset = offset.value_or(0),
                                 .charged = offset ? charged : 0};
  return CUDA_SUCCESS;
}

CUresult add_region(CUdeviceptr* address, std::size_t bytes, RegionKind kind) {
  CUcontext context = nullptr;
  if (const CUresult result = current_context(&context); result != CUDA_SUCCESS) return result;
  if (bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult result = check_no_capture(); result != CUDA_SUCCESS) return result;
  return make_region(context, kind, bytes, address);
}

std::map<CUdeviceptr, Region>::iterator find_region(CUdeviceptr address) {
  auto at = process().regions.upper_bound(address);
  if (at == process().regions.begin()) return process().regions.end();
  --at;
  return address - at->first < at->second.bytes ? at : process().regions.end();
}

enum class Place : std::uint8_t { kHost, kDevice, kAny };

// What is named device memory has to be some; of any address the engine depends on what it is.
CUresult check_place(Place* place, CUdeviceptr address, std::size_t bytes) {
  const auto at = find_region(address);
  const bool is_known = at != process().regions.end() && at->second.kind != RegionKind::kHost;
  if (*place == Place::kAny) *place = is_known ? Place::kDevice : Place::kHost;
  if (*place == Place::kDevice && bytes > 0 && !is_device_range(address, bytes))
    return CUDA_ERROR_INVALID_VALUE;
  return CUDA_SUCCESS;
}

CUresult copy(CUdeviceptr to, Place to_place, CUdeviceptr from, Place from_place, std::size_t bytes,
              CUstream stream) {
  if (bytes == 0) return CUDA_SUCCESS;
  {
    const std::lock_guard lock(process().mutex);
    CUcontext context = nullptr;
    CUresult result = current_context(&context);
    if (result == CUDA_SUCCESS) result = check_place(&to_place, to, bytes);
    if (result == CUDA_SUCCESS) result = check_place(&from_place, from, bytes);
    if (result != CUDA_SUCCESS) return result;
  }
  const Engine engine = to_place == from_place       ? Engine::kWithin
                        : to_place == Place::kDevice ? Engine::kToDevice
                                                     : Engine::kToHost;
  return enqueue(stream, {.kind = OpKind::kCopy, .engine = engine, .bytes = bytes, .action = [=] {
                            copy_bytes(to, from, bytes);
                          }});
}

CUresult finish(CUresult given) {
  if (given != CUDA_SUCCESS) return given;
  return cuStreamSynchronize(nullptr);
}

CUresult check_may_wait() {
  const std::lock_guard lock(process().mutex);
  return check_no_capture();
}

CUresult copy_now(CUdeviceptr to, Place to_place, CUdeviceptr from, Place from_place,
                  std::size_t bytes) {
  if (const CUresult result = check_may_wait(); result != CUDA_SUCCESS) return result;
  return finish(copy(to, to_place, from, from_place, bytes, nullptr));
}

template <typename Value>
CUresult set(CUdeviceptr to, Value value, std::size_t count, CUstream stream) {
  const std::size_t bytes = count * sizeof value;
  {
    const std::lock_guard lock(process().mutex);
    CUcontext context = nullptr;
    if (const CUresult result = current_context(&context); result != CUDA_SUCCESS) return result;
    if (to % sizeof value != 0 || (bytes > 0 && !is_device_range(to, bytes)))
      return CUDA_ERROR_INVALID_VALUE;
  }
  const auto fill = [=] {
    const std::lock_guard lock(process().mutex);
    for_each_part(to, bytes, [&](std::byte* part, std::uint64_t size) {
      std::fill_n(reinterpret_cast<Value*>(part), size / sizeof value, value);
    });
  };
  return enqueue(
      stream, {.kind = OpKind::kCopy, .engine = Engine::kWithin, .bytes = bytes, .action = fill});
}

CUdeviceptr address_of(const void* memory) {
  return reinterpret_cast<CUdeviceptr>(memory);
}

}  // namespace

CUresult allocate_device(CUcontext context, std::uint64_t bytes, CUdeviceptr* address) {
  return make_region(context, RegionKind::kDevice, bytes, address);
}

}  // namespace regatta::standin

// NOLINTBEGIN(readability-identifier-naming): the names are the driver's
extern "C" {

CUresult cuMemGetInfo_v2(std::size_t* free, std::size_t* total) {
  const std::lock_guard lock(process().mutex);
  CUcontext context = nullptr;
  if (const CUresult result = current_context(&context); result != CUDA_SUCCESS) return result;
  if (free != nullptr) *free = context->device->link.call({.message = Message::kMemory}).bytes;
  if (total != nullptr) *total = context->device->bytes;
  return CUDA_SUCCESS;
}

CUresult cuMemAlloc_v2(CUdeviceptr* address, std::size_t bytes) {
  if (address == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const std::lock_guard lock(process().mutex);
  return add_region(address, bytes, RegionKind::kDevice);
}

CUresult cuMemAllocPitch_v2(CUdeviceptr* address, std::size_t* pitch, std::size_t width,
                            std::size_t height, unsigned element_bytes) {
  if (address == nullptr || pitch == nullptr ||
      (element_bytes != 4 && element_bytes != 8 && element_bytes != 16))
    return CUDA_ERROR_INVALID_VALUE;
  const std::lock_guard lock(process().mutex);
  *pitch = (width + 511) / 512 * 512;
  return add_region(address, *pitch * height, RegionKind::kDevice);
}

// More than the device holds lies with the host, as managed memory does.
CUresult cuMemAllocManaged(CUdeviceptr* address, std::size_t bytes, unsigned flags) {
  if (address == nullptr || flags == 0 || flags > 4) return CUDA_ERROR_INVALID_VALUE;
  const std::lock_guard lock(process().mutex);
  return add_region(address, bytes, RegionKind::kManaged);
}

CUresult cuMemFree_v2(CUdeviceptr address) {
  if (address == 0) return CUDA_SUCCESS;
  CUcontext context = nullptr;
  {
    const std::lock_guard lock(process().mutex);
    CUcontext current = nullptr;
    if (const CUresult result = current_context(&current); result != CUDA_SUCCESS) return result;
    const auto at = process().regions.find(address);
    if (at == process().regions.end() || at->second.kind == RegionKind::kHost ||
        at->second.kind == RegionKind::kReserved || at->second.kind == RegionKind::kMapped)
      return CUDA_ERROR_INVALID_VALUE;
    if (const CUresult result = check_no_capture(); result != CUDA_SUCCESS) return result;
    context = at->second.kind == RegionKind::kGraph ? current : at->second.context;
  }
  // Work may still use it.
  if (const CUresult result = wait_context(context); result != CUDA_SUCCESS) return result;
  const std::lock_guard lock(process().mutex);
  const auto at = process().regions.find(address);
  if (at == process().regions.end()) return CUDA_ERROR_INVALID_VALUE;
  free_region(at);
  return CUDA_SUCCESS;
}

CUresult cuMemHostAlloc(void** memory, std::size_t bytes, unsigned flags) {
  if (memory == nullptr || flags > 7) return CUDA_ERROR_INVALID_VALUE;
  const std::lock_guard lock(process().mutex);
  CUdeviceptr address = 0;
  const CUresult result = add_region(&address, bytes, RegionKind::kHost);
  if (result == CUDA_SUCCESS) *memory = reinterpret_cast<void*>(address);
  return result;
}

CUresult cuMemAllocHost_v2(void** memory, std::size_t bytes) {
  return cuMemHostAlloc(memory, bytes, 0);
}

CUresult cuMemFreeHost(void* memory) {
  const std::lock_guard lock(process().mutex);
  const auto at = process().regions.find(address_of(memory));
  if (at == process().regions.end() || at->second.kind != RegionKind::kHost)
    return CUDA_ERROR_INVALID_VALUE;
  free_region(at);
  return CUDA_SUCCESS;
}

CUresult cuMemGetAddressRange_v2(CUdeviceptr* base, std::size_t* bytes, CUdeviceptr address) {
  const std::lock_guard lock(process().mutex);
  const auto at = find_region(address);
  if (at == process().regions.end()) return CUDA_ERROR_NOT_FOUND;
  if (base != nullptr) *base = at->first;
  if (bytes != nullptr) *bytes = at->second.bytes;
  return CUDA_SUCCESS;
}

CUresult cuPointerGetAttribute(void* data, int attribute, CUdeviceptr address) {
  if (data == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const std::lock_guard lock(process().mutex);
  const auto at = find_region(address);
  if (at == process().regions.end()) return CUDA_ERROR_INVALID_VALUE;
  const bool is_host = at->second.kind == RegionKind::kHost;
  if (attribute == CU_POINTER_ATTRIBUTE_MEMORY_TYPE)
    *static_cast<unsigned*>(data) = is_host ? 1 : CU_MEMORYTYPE_DEVICE;
  else if (attribute == CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL)
    *static_cast<int*>(data) = at->second.device->ordinal;
  else
    return CUDA_ERROR_INVALID_VALUE;
  return CUDA_SUCCESS;
}

CUresult cuMemcpy(CUdeviceptr to, CUdeviceptr from, std::size_t bytes) {
  return copy_now(to, Place::kAny, from, Place::kAny, bytes);
}
CUresult cuMemcpyHtoD_v2(CUdeviceptr to, const void* from, std::size_t bytes) {
  return copy_now(to, Place::kDevice, address_of(from), Place::kHost, bytes);
}
CUresult cuMemcpyDtoH_v2(void* to, CUdeviceptr from, std::size_t bytes) {
  return copy_now(address_of(to), Place::kHost, from, Place::kDevice, bytes);
}
CUresult cuMemcpyDtoD_v2(CUdeviceptr to, CUdeviceptr from, std::size_t bytes) {
  return copy_now(to, Place::kDevice, from, Place::kDevice, bytes);
}
CUresult cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, std::size_t bytes, CUstream stream) {
  return copy(to, Place::kAny, from, Place::kAny, bytes, stream);
}
CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void* from, std::size_t bytes,
                              CUstream stream) {
  return copy(to, Place::kDevice, address_of(from), Place::kHost, bytes, stream);
}
CUresult cuMemcpyDtoHAsync_v2(void* to, CUdeviceptr from, std::size_t bytes, CUstream stream) {
  return copy(address_of(to), Place::kHost, from, Place::kDevice, bytes, stream);
}
CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, std::size_t bytes,
                              CUstream stream) {
  return copy(to, Place::kDevice, from, Place::kDevice, bytes, stream);
}

CUresult cuMemsetD8_v2(CUdeviceptr to, unsigned char value, std::size_t count) {
  if (const CUresult result = check_may_wait(); result != CUDA_SUCCESS) return result;
  return finish(set(to, value, count, nullptr));
}
CUresult cuMemsetD32_v2(CUdeviceptr to, unsigned value, std::size_t count) {
  if (const CUresult result = check_may_wait(); result != CUDA_SUCCESS) return result;
  return finish(set(to, value, count, nullptr));
}
CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, std::size_t count, CUstream stream) {
  return set(to, value, count, stream);
}
CUresult cuMemsetD32Async(CUdeviceptr to, unsigned value, std::size_t count, CUstream stream) {
  return set(to, value, count, stream);
}

}  // extern "C"
// NOLINTEND(readability-identifier-naming)
