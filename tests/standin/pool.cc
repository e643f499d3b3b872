#include "tests/standin/pool.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <set>

#include <sys/mman.h>

#include "tests/standin/api.h"
#include "tests/standin/graph.h"
#include "tests/standin/share.h"

using namespace regatta::standin;

namespace regatta::standin {
namespace {

std::set<CUmemoryPool>& created_pools() {
  static auto* const pools = new std::set<CUmemoryPool>;
  return *pools;
}

bool is_settled(const PoolBlock& block) {
  return !process().streams.contains(block.stream) || block.stream->known_done >= block.sequence;
}

// A block for the stream: one that is free, or a new one of the device.
std::optional<PoolBlock> take_block(CUmemPoolHandle_st& pool, std::uint64_t bytes,
                                    CUstream stream) {
  const auto at = std::ranges::find_if(pool.free, [&](const PoolBlock& block) {
    return block.bytes == bytes && (block.stream == stream || is_settled(block));
  });
  if (at != pool.free.end()) {
    const PoolBlock block = *at;
    pool.free.erase(at);
    return block;
  }
  auto offset = pool.device->arena.allocate(bytes);
  if (!offset) {
    trim_pool(pool, 0);
    offset = pool.device->arena.allocate(bytes);
  }
  if (!offset) return std::nullopt;
  pool.reserved += bytes;
  pool.reserved_high = std::max(pool.reserved_high, pool.reserved);
  return PoolBlock{.offset = *offset, .bytes = bytes};
}

// Captured, memory becomes the graph's.
CUresult capture_alloc(CUdeviceptr* address, std::size_t bytes, CUstream_st& stream) {
  CUgraph const graph = stream.capture;
  if (graph->is_invalid) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  CUDA_MEM_ALLOC_NODE_PARAMS wanted{};
  wanted.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  wanted.poolProps.location = {CU_MEM_LOCATION_TYPE_DEVICE, stream.context->device->ordinal};
  wanted.bytesize = bytes;
  CUgraphNode node = nullptr;
  const CUresult added =
      add_alloc_node(&node, graph, stream.frontier.data(), stream.frontier.size(), &wanted);
  if (added != CUDA_SUCCESS) return added;
  stream.frontier = {node};
  *address = wanted.dptr;
  return CUDA_SUCCESS;
}

CUresult capture_free(CUdeviceptr address, CUstream_st& stream) {
  if (stream.capture->is_invalid) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  CUgraphNode node = nullptr;
  const CUresult added =
      add_free_node(&node, stream.capture, stream.frontier.data(), stream.frontier.size(), address);
  if (added == CUDA_SUCCESS) stream.frontier = {node};
  return added;
}

CUresult allocate(CUdeviceptr* address, std::size_t bytes, CUmemoryPool pool, CUstream handle) {
  CUstream stream = nullptr;
  if (const CUresult result = find_stream(handle, &stream); result != CUDA_SUCCESS) return result;
  if (stream->capture != nullptr) return capture_alloc(address, bytes, *stream);
  if (pool == nullptr) pool = stream->context->device->pool;
  const std::uint64_t rounded = (bytes + Arena::kBlock - 1) / Arena::kBlock * Arena::kBlock;
  const auto block = take_block(*pool, rounded, stream);
  if (!block) return CUDA_ERROR_OUT_OF_MEMORY;
  void* const range =
      mmap(nullptr, rounded, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  *address = reinterpret_cast<CUdeviceptr>(range);
  pool->used += rounded;
  pool->used_high = std::max(pool->used_high, pool->used);
  process().regions[*address] = {.kind = RegionKind::kPool,
                                 .id = ++process().last_id,
                                 .bytes = bytes,
                                 .context = stream->context,
                                 .device = pool->device,
                                 .offset = block->offset,
                                 .charged = rounded,
                                 .pool = pool};
  return CUDA_SUCCESS;
}

}  // namespace

bool is_pool(CUmemoryPool pool) {
  if (created_pools().contains(pool)) return true;
  return std::ranges::any_of(process().devices,
                             [&](const auto& device) { return device->default_pool == pool; });
}

CUmemoryPool add_pool(const CUmemPoolHandle_st& pool) {
  auto* const made = new CUmemPoolHandle_st(pool);
  created_pools().insert(made);
  return made;
}

namespace {

bool is_device(CUdevice number) {
  return number >= 0 && static_cast<std::size_t>(number) < process().devices.size();
}

std::uint64_t* attribute_of(CUmemPoolHandle_st& pool, int attribute) {
  switch (attribute) {
    case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
      return &pool.threshold;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT:
      return &pool.reserved;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
      return &pool.reserved_high;
    case CU_MEMPOOL_ATTR_USED_MEM_CURRENT:
      return &pool.used;
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
      return &pool.used_high;
    default:
      return nullptr;
  }
}

}  // namespace

void trim_pool(CUmemPoolHandle_st& pool, std::uint64_t keep_bytes) {
  for (auto at = pool.free.begin(); at != pool.free.end();) {
    if (pool.reserved <= keep_bytes) return;
    if (!is_settled(*at)) {
      ++at;
      continue;
    }
    pool.device->arena.free(at->offset, at->bytes);
    pool.reserved -= at->bytes;
    at = pool.free.erase(at);
  }
}

void trim_pools(DeviceState& device) {
  trim_pool(*device.default_pool, device.default_pool->threshold);
  for (const CUmemoryPool pool : created_pools())
    if (pool->device == &device) trim_pool(*pool, pool->threshold);
}

}  // namespace regatta::standin

// NOLINTBEGIN(readability-identifier-naming): the names are the driver's
extern "C" {

CUresult cuMemAllocAsync(CUdeviceptr* address, std::size_t bytes, CUstream stream) {
  if (address == nullptr || bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  const std::lock_guard lock(process().mutex);
  return allocate(address, bytes, nullptr, stream);
}

CUresult cuMemAllocFromPoolAsync(CUdeviceptr* address, std::size_t bytes, CUmemoryPool pool,
                                 CUstream stream) {
  const std::lock_guard lock(process().mutex);
  if (address == nullptr || bytes == 0 || !is_pool(pool) || pool->is_imported)
    return CUDA_ERROR_INVALID_VALUE;
  return allocate(address, bytes, pool, stream);
}

CUresult cuMemFreeAsync(CUdeviceptr address, CUstream handle) {
  const std::lock_guard lock(process().mutex);
  CUstream stream = nullptr;
  if (const CUresult result = find_stream(handle, &stream); result != CUDA_SUCCESS) return result;
  if (stream->capture != nullptr) return capture_free(address, *stream);
  const auto at = process().regions.find(address);
  if (at != process().regions.end() && at->second.kind == RegionKind::kGraph)
    return free_graph_memory(address) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  if (at == process().regions.end()) return CUDA_ERROR_INVALID_VALUE;
  if (at->second.kind == RegionKind::kOpened && at->second.pool != nullptr) {
    // Its bytes are reached by the mapping, which work may still use: the address goes now, that
    // later.
    const auto opened = at->second.opened;
    munmap(reinterpret_cast<void*>(address), at->second.bytes);
    process().regions.erase(at);
    submit(*stream, {.kind = OpKind::kCall, .action = [opened] { close_share(*opened); }});
    return CUDA_SUCCESS;
  }
  if (at->second.kind != RegionKind::kPool) return CUDA_ERROR_INVALID_VALUE;
  const Region region = at->second;
  region.pool->free.push_back({region.offset, region.charged, stream, stream->submitted});
  region.pool->used -= region.charged;
  munmap(reinterpret_cast<void*>(address), region.charged);
  process().regions.erase(at);
  return CUDA_SUCCESS;
}

CUresult cuMemPoolCreate(CUmemoryPool* pool, const CUmemPoolProps* properties) {
  const std::lock_guard lock(process().mutex);
  if (pool == nullptr || properties == nullptr ||
      properties->allocType != CU_MEM_ALLOCATION_TYPE_PINNED ||
      properties->location.type != CU_MEM_LOCATION_TYPE_DEVICE ||
      !is_device(properties->location.id))
    return CUDA_ERROR_INVALID_VALUE;
  const auto device = static_cast<std::size_t>(properties->location.id);
  *pool = add_pool(
      {.device = process().devices[device].get(), .handle_types = properties->handleTypes});
  return CUDA_SUCCESS;
}

CUresult cuMemPoolDestroy(CUmemoryPool pool) {
  const std::lock_guard lock(process().mutex);
  if (!created_pools().contains(pool)) return CUDA_ERROR_INVALID_VALUE;
  // Memory that is still allocated is returned when it is freed.
  pool->threshold = 0;
  trim_pool(*pool, 0);
  if (pool->device->pool == pool) pool->device->pool = pool->device->default_pool;
  return CUDA_SUCCESS;
}

CUresult cuMemPoolTrimTo(CUmemoryPool pool, std::size_t bytes_to_keep) {
  const std::lock_guard lock(process().mutex);
  if (!is_pool(pool)) return CUDA_ERROR_INVALID_VALUE;
  trim_pool(*pool, bytes_to_keep);
  return CUDA_SUCCESS;
}

CUresult cuMemPoolGetAttribute(CUmemoryPool pool, int attribute, void* value) {
  const std::lock_guard lock(process().mutex);
  if (value == nullptr || !is_pool(pool)) return CUDA_ERROR_INVALID_VALUE;
  if (attribute >= 1 && attribute <= 3) {  // how memory may be reused: as it likes
    *static_cast<int*>(value) = 1;
    return CUDA_SUCCESS;
  }
  const std::uint64_t* const known = attribute_of(*pool, attribute);
  if (known == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *static_cast<std::uint64_t*>(value) = *known;
  return CUDA_SUCCESS;
}

CUresult cuMemPoolSetAttribute(CUmemoryPool pool, int attribute, void* value) {
  const std::lock_guard lock(process().mutex);
  if (value == nullptr || !is_pool(pool)) return CUDA_ERROR_INVALID_VALUE;
  if (attribute >= 1 && attribute <= 3) return CUDA_SUCCESS;
  const std::uint64_t wanted = *static_cast<std::uint64_t*>(value);
  if (attribute == CU_MEMPOOL_ATTR_RELEASE_THRESHOLD) {
    pool->threshold = wanted;
    return CUDA_SUCCESS;
  }
  // The high marks can be set to 0: then they start again.
  if (wanted != 0) return CUDA_ERROR_INVALID_VALUE;
  if (attribute == CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH) {
    pool->reserved_high = pool->reserved;
  } else if (attribute == CU_MEMPOOL_ATTR_USED_MEM_HIGH) {
    pool->used_high = pool->used;
  } else {
    return CUDA_ERROR_INVALID_VALUE;
  }
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetDefaultMemPool(CUmemoryPool* pool, CUdevice number) {
  const std::lock_guard lock(process().mutex);
  if (pool == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (!is_device(number)) return CUDA_ERROR_INVALID_DEVICE;
  *pool = process().devices[static_cast<std::size_t>(number)]->default_pool;
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetMemPool(CUmemoryPool* pool, CUdevice number) {
  const std::lock_guard lock(process().mutex);
  if (pool == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (!is_device(number)) return CUDA_ERROR_INVALID_DEVICE;
  *pool = process().devices[static_cast<std::size_t>(number)]->pool;
  return CUDA_SUCCESS;
}

CUresult cuDeviceSetMemPool(CUdevice number, CUmemoryPool pool) {
  const std::lock_guard lock(process().mutex);
  if (!is_device(number)) return CUDA_ERROR_INVALID_DEVICE;
  DeviceState* const device = process().devices[static_cast<std::size_t>(number)].get();
  if (!is_pool(pool) || pool->device != device) return CUDA_ERROR_INVALID_VALUE;
  device->pool = pool;
  return CUDA_SUCCESS;
}

}  // extern "C"
// NOLINTEND(readability-identifier-naming)
