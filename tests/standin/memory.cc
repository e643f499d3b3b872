// Memory of a device and of the host.
#include <optional>

#include <sys/mman.h>

#include "tests/standin/api.h"
#include "tests/standin/graph.h"
#include "tests/standin/pool.h"
#include "tests/standin/process.h"
#include "tests/standin/share.h"

using namespace regatta::standin;

namespace regatta::standin {

namespace {
std::uint64_t whole_blocks(std::uint64_t bytes) {
  return (bytes + Arena::kBlock - 1) / Arena::kBlock * Arena::kBlock;
}

// Those of the arena stay, as it does.
void unmap(CUdeviceptr address, const Region& region) {
  const bool has_whole_blocks = region.kind == RegionKind::kHost ||
                                region.kind == RegionKind::kManaged ||
                                region.kind == RegionKind::kPool;
  if (has_whole_blocks || region.kind == RegionKind::kOpened)
    munmap(reinterpret_cast<void*>(address),
           has_whole_blocks ? whole_blocks(region.bytes) : region.bytes);
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
  } else if (region.kind == RegionKind::kOpened) {
    close_share(*region.opened);
  } else if (region.charged != 0 &&
             may_free(*region.device, region.share, region.offset, region.charged)) {
    region.device->arena.free(region.offset, region.charged);
  }
  unmap(at->first, region);
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
                                 .id = ++process().last_id,
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

bool may_be_freed(const Region& region) {
  switch (region.kind) {
    case RegionKind::kDevice:
    case RegionKind::kManaged:
    case RegionKind::kPool:
    case RegionKind::kGraph:
      return true;
    case RegionKind::kOpened:  // handles are closed, pointers of pools freed
      return region.pool != nullptr;
    default:
      return false;
  }
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
  if (context->is_of_first_version) return CUDA_ERROR_INVALID_CONTEXT;  // driver 580
  if (free != nullptr) *free = context->device->link.call({.message = PacketType::kMemory}).bytes;
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
  constexpr std::size_t kMost = 1ULL << 48;  // no device has as much
  if (width > kMost || height > kMost / ((width + 511) / 512 * 512 + 1))
    return CUDA_ERROR_OUT_OF_MEMORY;
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
    if (at == process().regions.end() || !may_be_freed(at->second)) return CUDA_ERROR_INVALID_VALUE;
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
  if (result != CUDA_SUCCESS) return result;
  process().regions.at(address).flags = flags;
  *memory = reinterpret_cast<void*>(address);
  return CUDA_SUCCESS;
}

CUresult cuMemAllocHost_v2(void** memory, std::size_t bytes) {
  return cuMemHostAlloc(memory, bytes, 0);
}

CUresult cuMemFreeHost(void* memory) {
  const std::lock_guard lock(process().mutex);
  const auto at = process().regions.find(reinterpret_cast<CUdeviceptr>(memory));
  if (at == process().regions.end() || at->second.kind != RegionKind::kHost)
    return CUDA_ERROR_INVALID_VALUE;
  free_region(at);
  return CUDA_SUCCESS;
}

CUresult cuMemGetAddressRange_v2(CUdeviceptr* base, std::size_t* bytes, CUdeviceptr address) {
  const std::lock_guard lock(process().mutex);
  const auto at = region_of(address);
  if (at == process().regions.end()) return CUDA_ERROR_NOT_FOUND;
  if (base != nullptr) *base = at->first;
  if (bytes != nullptr) *bytes = at->second.bytes;
  return CUDA_SUCCESS;
}

}  // extern "C"
// NOLINTEND(readability-identifier-naming)
