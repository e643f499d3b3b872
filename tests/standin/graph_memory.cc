// Memory that graphs allocate: its addresses are known when the node is made, its bytes are taken
// at the first launch and kept for the next ones until they are trimmed.
#include <algorithm>
#include <map>
#include <optional>

#include <sys/mman.h>

#include "tests/standin/api.h"
#include "tests/standin/graph.h"

using namespace regatta::standin;

namespace regatta::standin {
namespace {

struct GraphMemory {
  DeviceState* device = nullptr;
  std::uint64_t bytes = 0;
  std::optional<std::uint64_t> offset;  // while the device holds it
  bool is_used = false;                 // a launch allocated it and nothing has freed it
};

struct Marks {
  std::uint64_t used_high = 0;
  std::uint64_t reserved_high = 0;
};

std::map<CUdeviceptr, GraphMemory>& memories() {
  static auto* const all = new std::map<CUdeviceptr, GraphMemory>;
  return *all;
}
std::map<DeviceState*, Marks>& marks() {
  static auto* const all = new std::map<DeviceState*, Marks>;
  return *all;
}

std::uint64_t reserved_bytes(const DeviceState* device) {
  std::uint64_t bytes = 0;
  for (const auto& [address, memory] : memories())
    if (memory.device == device && memory.offset) bytes += memory.bytes;
  return bytes;
}
std::uint64_t used_bytes(const DeviceState* device) {
  std::uint64_t bytes = 0;
  for (const auto& [address, memory] : memories())
    if (memory.device == device && memory.is_used) bytes += memory.bytes;
  return bytes;
}

bool back(CUdeviceptr address, GraphMemory& memory) {
  if (memory.offset) return true;
  memory.offset = memory.device->arena.allocate(memory.bytes);
  if (!memory.offset) return false;
  Region& region = process().regions.at(address);
  region.offset = *memory.offset;
  region.is_accessible = true;
  return true;
}

}  // namespace

CUresult begin_graph_memory(const GraphAddresses& addresses, bool frees_first) {
  if (frees_first)
    for (const CUdeviceptr address : addresses.allocated)
      free_graph_memory(address);
  for (const CUdeviceptr address : addresses.allocated)
    if (memories().at(address).is_used) return CUDA_ERROR_INVALID_VALUE;
  for (const CUdeviceptr address : addresses.allocated)
    if (!back(address, memories().at(address))) return CUDA_ERROR_OUT_OF_MEMORY;
  for (const CUdeviceptr address : addresses.allocated) {
    GraphMemory& memory = memories().at(address);
    memory.is_used = true;
    Marks& high = marks()[memory.device];
    high.used_high = std::max(high.used_high, used_bytes(memory.device));
    high.reserved_high = std::max(high.reserved_high, reserved_bytes(memory.device));
  }
  for (const CUdeviceptr address : addresses.freed)
    free_graph_memory(address);
  return CUDA_SUCCESS;
}

bool free_graph_memory(CUdeviceptr address) {
  const auto at = memories().find(address);
  if (at == memories().end() || !at->second.is_used) return false;
  at->second.is_used = false;
  return true;
}

namespace {

DeviceState* find_device(CUdevice number) {
  const auto& devices = process().devices;
  if (number < 0 || static_cast<std::size_t>(number) >= devices.size()) return nullptr;
  return devices[static_cast<std::size_t>(number)].get();
}

}  // namespace

CUresult add_alloc_node(CUgraphNode* node, CUgraph graph, const CUgraphNode* after,
                        std::size_t count, CUDA_MEM_ALLOC_NODE_PARAMS* wanted) {
  if (wanted == nullptr || wanted->bytesize == 0 ||
      wanted->poolProps.allocType != CU_MEM_ALLOCATION_TYPE_PINNED ||
      wanted->poolProps.location.type != CU_MEM_LOCATION_TYPE_DEVICE)
    return CUDA_ERROR_INVALID_VALUE;
  DeviceState* const device = find_device(wanted->poolProps.location.id);
  if (device == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const std::uint64_t bytes =
      (wanted->bytesize + Arena::kBlock - 1) / Arena::kBlock * Arena::kBlock;
  void* const range =
      mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (range == MAP_FAILED) return CUDA_ERROR_OUT_OF_MEMORY;
  wanted->dptr = reinterpret_cast<CUdeviceptr>(range);
  const CUresult added =
      add_node(node, graph, after, count,
               {.type = CU_GRAPH_NODE_TYPE_MEM_ALLOC, .alloc = *wanted, .address = wanted->dptr});
  if (added != CUDA_SUCCESS) {
    munmap(range, bytes);
    return added;
  }
  memories()[wanted->dptr] = {.device = device, .bytes = bytes};
  process().regions[wanted->dptr] = {.kind = RegionKind::kGraph,
                                     .id = ++process().last_id,
                                     .bytes = wanted->bytesize,
                                     .device = device,
                                     .is_accessible = false};
  return CUDA_SUCCESS;
}

CUresult add_free_node(CUgraphNode* node, CUgraph graph, const CUgraphNode* after,
                       std::size_t count, CUdeviceptr address) {
  if (!memories().contains(address)) return CUDA_ERROR_INVALID_VALUE;
  return add_node(node, graph, after, count,
                  {.type = CU_GRAPH_NODE_TYPE_MEM_FREE, .address = address});
}

}  // namespace regatta::standin

// NOLINTBEGIN(readability-identifier-naming): the names are the driver's
extern "C" {

CUresult cuGraphAddMemAllocNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* after,
                                std::size_t count, CUDA_MEM_ALLOC_NODE_PARAMS* wanted) {
  const std::lock_guard lock(process().mutex);
  return add_alloc_node(node, graph, after, count, wanted);
}

CUresult cuGraphAddMemFreeNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* after,
                               std::size_t count, CUdeviceptr address) {
  const std::lock_guard lock(process().mutex);
  return add_free_node(node, graph, after, count, address);
}

// Memory that launches in progress use stays.
CUresult cuDeviceGraphMemTrim(CUdevice number) {
  const std::lock_guard lock(process().mutex);
  DeviceState* const device = find_device(number);
  if (device == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  const bool is_idle = std::ranges::all_of(process().streams, [&](CUstream stream) {
    return stream->context->device != device || stream->known_done == stream->submitted;
  });
  if (!is_idle) return CUDA_SUCCESS;
  for (auto& [address, memory] : memories()) {
    if (memory.device != device || memory.is_used || !memory.offset) continue;
    device->arena.free(*memory.offset, memory.bytes);
    memory.offset.reset();
    process().regions.at(address).is_accessible = false;
  }
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetGraphMemAttribute(CUdevice number, int attribute, void* value) {
  const std::lock_guard lock(process().mutex);
  DeviceState* const device = find_device(number);
  if (device == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  if (value == nullptr || attribute < 0 || attribute > 3) return CUDA_ERROR_INVALID_VALUE;
  const std::uint64_t values[] = {used_bytes(device), marks()[device].used_high,
                                  reserved_bytes(device), marks()[device].reserved_high};
  *static_cast<std::uint64_t*>(value) = values[attribute];
  return CUDA_SUCCESS;
}

// The high marks can be set to 0: then they start again.
CUresult cuDeviceSetGraphMemAttribute(CUdevice number, int attribute, void* value) {
  const std::lock_guard lock(process().mutex);
  DeviceState* const device = find_device(number);
  if (device == nullptr) return CUDA_ERROR_INVALID_DEVICE;
  if (value == nullptr || *static_cast<std::uint64_t*>(value) != 0 ||
      (attribute != 1 && attribute != 3))
    return CUDA_ERROR_INVALID_VALUE;
  Marks& high = marks()[device];
  if (attribute == 1) high.used_high = used_bytes(device);
  if (attribute == 3) high.reserved_high = reserved_bytes(device);
  return CUDA_SUCCESS;
}

}  // extern "C"
// NOLINTEND(readability-identifier-naming)
