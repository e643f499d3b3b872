// Memory without addresses, addresses without memory, and bringing the two together.
#include <iterator>
#include <map>
#include <memory>

#include <sys/mman.h>

#include "tests/standin/api.h"
#include "tests/standin/process.h"
#include "tests/standin/share.h"

using namespace regatta::standin;

namespace {

// The device holds the bytes until every reference is released and nothing is mapped to them.
struct Physical {
  DeviceState* device = nullptr;
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
  int mappings = 0;
  int references = 1;
  int handle_types = 0;
  std::uint64_t share = 0;                 // other processes may know it by
  std::shared_ptr<const Opened> opened{};  // another process's
};

std::map<CUmemGenericAllocationHandle, Physical>& handles() {
  static auto* const all = new std::map<CUmemGenericAllocationHandle, Physical>;
  return *all;
}

bool is_whole(std::uint64_t bytes) {
  return bytes != 0 && bytes % Arena::kBlock == 0;
}

DeviceState* device_of(const CUmemAllocationProp* properties) {
  if (properties == nullptr || properties->type != CU_MEM_ALLOCATION_TYPE_PINNED ||
      properties->location.type != CU_MEM_LOCATION_TYPE_DEVICE || properties->location.id < 0 ||
      static_cast<std::size_t>(properties->location.id) >= process().devices.size())
    return nullptr;
  return process().devices[static_cast<std::size_t>(properties->location.id)].get();
}

void free_when_unused(CUmemGenericAllocationHandle handle) {
  const Physical physical = handles().at(handle);
  if (physical.references > 0 || physical.mappings > 0) return;
  if (physical.opened)
    close_share(*physical.opened);
  else if (may_free(*physical.device, physical.share, physical.offset, physical.bytes))
    physical.device->arena.free(physical.offset, physical.bytes);
  handles().erase(handle);
}

bool is_reserved(CUdeviceptr address, std::uint64_t bytes) {
  auto at = process().reserved.upper_bound(address);
  if (at == process().reserved.begin()) return false;
  --at;
  return address + bytes <= at->first + at->second;
}

bool is_mapped_in_part(CUdeviceptr address, std::uint64_t bytes) {
  const auto at = process().regions.lower_bound(address + bytes);
  if (at == process().regions.begin()) return false;
  const auto last = std::prev(at);
  return last->first + last->second.bytes > address;
}

// Whole mappings, one after the other, that make up the range.
bool is_mapped_wholly(CUdeviceptr address, std::uint64_t bytes) {
  CUdeviceptr next = address;
  while (next < address + bytes) {
    const auto at = process().regions.find(next);
    if (at == process().regions.end() || at->second.kind != RegionKind::kMapped) return false;
    next += at->second.bytes;
  }
  return next == address + bytes;
}

}  // namespace

namespace regatta::standin {

bool shares_mappings() {
  for (const auto& [handle, physical] : handles())
    if (physical.share != 0 || physical.opened) return true;
  return false;
}

}  // namespace regatta::standin

// NOLINTBEGIN(readability-identifier-naming): the names are the driver's
extern "C" {

CUresult cuMemGetAllocationGranularity(std::size_t* bytes, const CUmemAllocationProp* properties,
                                       int option) {
  const std::lock_guard lock(process().mutex);
  if (!process().is_started) return CUDA_ERROR_NOT_INITIALIZED;
  if (bytes == nullptr || device_of(properties) == nullptr || option < 0 || option > 1)
    return CUDA_ERROR_INVALID_VALUE;
  *bytes = Arena::kBlock;
  return CUDA_SUCCESS;
}

CUresult cuMemCreate(CUmemGenericAllocationHandle* handle, std::size_t bytes,
                     const CUmemAllocationProp* properties, unsigned long long flags) {
  const std::lock_guard lock(process().mutex);
  if (!process().is_started || process().is_forked) return CUDA_ERROR_NOT_INITIALIZED;
  DeviceState* const device = device_of(properties);
  if (handle == nullptr || device == nullptr || !is_whole(bytes) || flags != 0)
    return CUDA_ERROR_INVALID_VALUE;
  const auto offset = device->arena.allocate(bytes);
  if (!offset) return CUDA_ERROR_OUT_OF_MEMORY;
  *handle = ++process().last_id;
  handles()[*handle] = {.device = device,
                        .offset = *offset,
                        .bytes = bytes,
                        .handle_types = properties->requestedHandleTypes};
  return CUDA_SUCCESS;
}

CUresult cuMemRelease(CUmemGenericAllocationHandle handle) {
  const std::lock_guard lock(process().mutex);
  const auto at = handles().find(handle);
  if (at == handles().end() || at->second.references == 0) return CUDA_ERROR_INVALID_VALUE;
  --at->second.references;
  free_when_unused(handle);
  return CUDA_SUCCESS;
}

CUresult cuMemAddressReserve(CUdeviceptr* address, std::size_t bytes, std::size_t alignment,
                             CUdeviceptr, unsigned long long flags) {
  const std::lock_guard lock(process().mutex);
  if (!process().is_started) return CUDA_ERROR_NOT_INITIALIZED;
  if (address == nullptr || !is_whole(bytes) || (alignment & (alignment - 1)) != 0 || flags != 0)
    return CUDA_ERROR_INVALID_VALUE;
  // Mappings start at whole blocks.
  const std::size_t step = alignment > Arena::kBlock ? alignment : Arena::kBlock;
  void* const range =
      mmap(nullptr, bytes + step, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (range == MAP_FAILED) return CUDA_ERROR_OUT_OF_MEMORY;
  const auto begin = reinterpret_cast<CUdeviceptr>(range);
  *address = (begin + step - 1) / step * step;
  if (*address > begin) munmap(range, *address - begin);
  munmap(reinterpret_cast<void*>(*address + bytes), begin + step - *address);
  process().reserved[*address] = bytes;
  return CUDA_SUCCESS;
}

CUresult cuMemAddressFree(CUdeviceptr address, std::size_t bytes) {
  const std::lock_guard lock(process().mutex);
  const auto at = process().reserved.find(address);
  if (at == process().reserved.end() || at->second != bytes || is_mapped_in_part(address, bytes))
    return CUDA_ERROR_INVALID_VALUE;
  munmap(reinterpret_cast<void*>(address), bytes);
  process().reserved.erase(at);
  return CUDA_SUCCESS;
}

CUresult cuMemMap(CUdeviceptr address, std::size_t bytes, std::size_t offset,
                  CUmemGenericAllocationHandle handle, unsigned long long flags) {
  const std::lock_guard lock(process().mutex);
  const auto at = handles().find(handle);
  if (at == handles().end() || at->second.references == 0 || flags != 0 || !is_whole(bytes) ||
      offset != 0 || bytes != at->second.bytes || address % Arena::kBlock != 0 ||
      !is_reserved(address, bytes) || is_mapped_in_part(address, bytes))
    return CUDA_ERROR_INVALID_VALUE;
  ++at->second.mappings;
  process().regions[address] = {.kind = RegionKind::kMapped,
                                .id = ++process().last_id,
                                .bytes = bytes,
                                .device = at->second.device,
                                .offset = at->second.offset,
                                .handle = handle,
                                .is_accessible = false,
                                .opened = at->second.opened,
                                .handle_types = at->second.handle_types};
  return CUDA_SUCCESS;
}

CUresult cuMemUnmap(CUdeviceptr address, std::size_t bytes) {
  const std::lock_guard lock(process().mutex);
  if (!is_whole(bytes) || !is_mapped_wholly(address, bytes)) return CUDA_ERROR_INVALID_VALUE;
  for (auto at = process().regions.find(address);
       at != process().regions.end() && at->first < address + bytes;) {
    const CUmemGenericAllocationHandle handle = at->second.handle;
    at = process().regions.erase(at);
    --handles().at(handle).mappings;
    free_when_unused(handle);
  }
  return CUDA_SUCCESS;
}

CUresult cuMemSetAccess(CUdeviceptr address, std::size_t bytes, const CUmemAccessDesc* who,
                        std::size_t count) {
  const std::lock_guard lock(process().mutex);
  if (who == nullptr || count == 0 || !is_whole(bytes) || !is_mapped_wholly(address, bytes))
    return CUDA_ERROR_INVALID_VALUE;
  for (auto at = process().regions.find(address);
       at != process().regions.end() && at->first < address + bytes; ++at)
    for (std::size_t i = 0; i < count; ++i)
      if (who[i].location.id == at->second.device->ordinal)
        at->second.is_accessible = who[i].flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  return CUDA_SUCCESS;
}

CUresult cuMemGetAccess(unsigned long long* flags, const CUmemLocation* location,
                        CUdeviceptr address) {
  const std::lock_guard lock(process().mutex);
  const auto at = region_of(address);
  if (flags == nullptr || location == nullptr || at == process().regions.end())
    return CUDA_ERROR_INVALID_VALUE;
  const bool is_there = location->type == CU_MEM_LOCATION_TYPE_DEVICE &&
                        location->id == at->second.device->ordinal && at->second.is_accessible;
  *flags = is_there ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE : 0;
  return CUDA_SUCCESS;
}

CUresult cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp* properties,
                                                CUmemGenericAllocationHandle handle) {
  const std::lock_guard lock(process().mutex);
  const auto at = handles().find(handle);
  if (properties == nullptr || at == handles().end()) return CUDA_ERROR_INVALID_VALUE;
  *properties = {};
  properties->type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties->requestedHandleTypes = at->second.handle_types;
  properties->location = {CU_MEM_LOCATION_TYPE_DEVICE, at->second.device->ordinal};
  return CUDA_SUCCESS;
}

// It has to be released as often as it is retained.
CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle* handle, void* address) {
  const std::lock_guard lock(process().mutex);
  const auto at = region_of(reinterpret_cast<CUdeviceptr>(address));
  if (handle == nullptr || at == process().regions.end() || at->second.kind != RegionKind::kMapped)
    return CUDA_ERROR_INVALID_VALUE;
  *handle = at->second.handle;
  ++handles().at(*handle).references;
  return CUDA_SUCCESS;
}

CUresult cuMemExportToShareableHandle(void* file, CUmemGenericAllocationHandle handle, int type,
                                      unsigned long long flags) {
  const std::lock_guard lock(process().mutex);
  const auto at = handles().find(handle);
  if (file == nullptr || at == handles().end() || flags != 0 || at->second.opened ||
      type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR || (at->second.handle_types & type) == 0)
    return CUDA_ERROR_INVALID_VALUE;
  Physical& physical = at->second;
  const ShareHandle ticket = show(*physical.device, physical.offset, physical.bytes);
  const int made = ticket.share == 0 ? -1 : make_ticket_file(ticket);
  if (made < 0) return CUDA_ERROR_OUT_OF_MEMORY;
  physical.share = ticket.share;
  *static_cast<int*>(file) = made;
  return CUDA_SUCCESS;
}

CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle* handle, void* file,
                                        int type) {
  const std::lock_guard lock(process().mutex);
  if (!process().is_started) return CUDA_ERROR_NOT_INITIALIZED;
  if (handle == nullptr || type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
    return CUDA_ERROR_INVALID_VALUE;
  const ShareHandle ticket =
      read_ticket_file(static_cast<int>(reinterpret_cast<std::intptr_t>(file)));
  const Opened opened = open_share(ticket);
  if (opened.content == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *handle = ++process().last_id;
  handles()[*handle] = {.device = opened.device,
                        .bytes = ticket.bytes,
                        .handle_types = type,
                        .opened = std::make_shared<const Opened>(opened)};
  return CUDA_SUCCESS;
}

}  // extern "C"
// NOLINTEND(readability-identifier-naming)
