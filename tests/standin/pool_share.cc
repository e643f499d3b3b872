// Pools that processes share, and who may access them.
#include <cstring>

#include "tests/standin/api.h"
#include "tests/standin/pool.h"
#include "tests/standin/share.h"

using namespace regatta::standin;

// NOLINTBEGIN(readability-identifier-naming): the names are the driver's
extern "C" {

// The file says which device; what it gives is told pointer by pointer.
CUresult cuMemPoolExportToShareableHandle(void* file, CUmemoryPool pool, int type,
                                          unsigned long long flags) {
  const std::lock_guard lock(process().mutex);
  if (file == nullptr || !is_pool(pool) || pool->is_imported || flags != 0 ||
      type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR || (pool->handle_types & type) == 0)
    return CUDA_ERROR_INVALID_VALUE;
  const int made = make_ticket_file({.device = pool->device->id});
  if (made < 0) return CUDA_ERROR_OUT_OF_MEMORY;
  *static_cast<int*>(file) = made;
  return CUDA_SUCCESS;
}

CUresult cuMemPoolImportFromShareableHandle(CUmemoryPool* pool, void* file, int type,
                                            unsigned long long flags) {
  const std::lock_guard lock(process().mutex);
  if (!process().is_started) return CUDA_ERROR_NOT_INITIALIZED;
  if (pool == nullptr || type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR || flags != 0)
    return CUDA_ERROR_INVALID_VALUE;
  const ShareHandle ticket =
      read_ticket_file(static_cast<int>(reinterpret_cast<std::intptr_t>(file)));
  for (const auto& device : process().devices)
    if (device->id == ticket.device) {
      *pool = add_pool({.device = device.get(), .is_imported = true});
      return CUDA_SUCCESS;
    }
  return CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemPoolExportPointer(CUmemPoolPtrExportData* data, CUdeviceptr address) {
  const std::lock_guard lock(process().mutex);
  const auto at = process().regions.find(address);
  if (data == nullptr || at == process().regions.end() || at->second.kind != RegionKind::kPool ||
      at->second.pool->handle_types == 0)
    return CUDA_ERROR_INVALID_VALUE;
  Region& region = at->second;
  ShareHandle ticket = show(*region.device, region.offset, region.charged);
  if (ticket.share == 0) return CUDA_ERROR_OUT_OF_MEMORY;
  ticket.bytes = region.bytes;
  *data = {};
  std::memcpy(data->reserved, &ticket, sizeof ticket);
  return CUDA_SUCCESS;
}

CUresult cuMemPoolImportPointer(CUdeviceptr* address, CUmemoryPool pool,
                                CUmemPoolPtrExportData* data) {
  const std::lock_guard lock(process().mutex);
  CUcontext context = nullptr;
  if (const CUresult result = current_context(&context); result != CUDA_SUCCESS) return result;
  if (address == nullptr || data == nullptr || !is_pool(pool) || !pool->is_imported)
    return CUDA_ERROR_INVALID_VALUE;
  ShareHandle ticket;
  std::memcpy(&ticket, data->reserved, sizeof ticket);
  const Opened opened = open_share(ticket);
  if (opened.content == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *address = add_opened(opened, ticket.bytes, context);
  process().regions.at(*address).pool = pool;
  return CUDA_SUCCESS;
}

// Every device reaches every pool.
CUresult cuMemPoolSetAccess(CUmemoryPool pool, const CUmemAccessDesc* who, std::size_t count) {
  const std::lock_guard lock(process().mutex);
  if (!is_pool(pool) || who == nullptr || count == 0) return CUDA_ERROR_INVALID_VALUE;
  for (std::size_t i = 0; i < count; ++i)
    if (who[i].location.type != CU_MEM_LOCATION_TYPE_DEVICE ||
        (who[i].location.id == pool->device->ordinal &&
         who[i].flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE))
      return CUDA_ERROR_INVALID_VALUE;
  return CUDA_SUCCESS;
}

CUresult cuMemPoolGetAccess(unsigned* flags, CUmemoryPool pool, CUmemLocation* location) {
  const std::lock_guard lock(process().mutex);
  if (flags == nullptr || location == nullptr || !is_pool(pool)) return CUDA_ERROR_INVALID_VALUE;
  *flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  return CUDA_SUCCESS;
}

}  // extern "C"
// NOLINTEND(readability-identifier-naming)
