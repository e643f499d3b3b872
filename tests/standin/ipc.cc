// Device memory that processes share: by handles that travel as bytes.
#include <algorithm>
#include <cstring>

#include <unistd.h>

#include "tests/standin/api.h"
#include "tests/standin/share.h"

using namespace regatta::standin;

namespace {

ShareHandle ticket_of(const CUipcMemHandle& handle) {
  ShareHandle ticket;
  std::memcpy(&ticket, handle.reserved, sizeof ticket);
  return ticket;
}

}  // namespace

// NOLINTBEGIN(readability-identifier-naming): the names are the driver's
extern "C" {

CUresult cuIpcGetMemHandle(CUipcMemHandle* handle, CUdeviceptr address) {
  if (handle == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const std::lock_guard lock(process().mutex);
  CUcontext context = nullptr;
  if (const CUresult result = current_context(&context); result != CUDA_SUCCESS) return result;
  const auto at = process().regions.find(address);
  // Only allocations that are one piece of one process can be exported.
  if (at == process().regions.end() || at->second.kind != RegionKind::kDevice)
    return CUDA_ERROR_INVALID_VALUE;
  Region& region = at->second;
  const ShareHandle ticket = show(*region.device, region.offset, region.bytes);
  if (ticket.share == 0) return CUDA_ERROR_OUT_OF_MEMORY;
  region.share = ticket.share;
  *handle = {};
  std::memcpy(handle->reserved, &ticket, sizeof ticket);
  return CUDA_SUCCESS;
}

CUresult cuIpcOpenMemHandle_v2(CUdeviceptr* address, CUipcMemHandle handle, unsigned flags) {
  if (address == nullptr || flags != CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS)
    return CUDA_ERROR_INVALID_VALUE;
  const std::lock_guard lock(process().mutex);
  CUcontext context = nullptr;
  if (const CUresult result = current_context(&context); result != CUDA_SUCCESS) return result;
  if (const CUresult result = check_no_capture(); result != CUDA_SUCCESS) return result;
  const ShareHandle ticket = ticket_of(handle);
  // Not in the process that shows it.
  if (ticket.pid == static_cast<std::uint64_t>(getpid())) return CUDA_ERROR_INVALID_CONTEXT;
  for (auto& [own, region] : process().regions)
    if (region.kind == RegionKind::kOpened && region.context == context &&
        region.opened->share == ticket.share && region.opened->device->id == ticket.device &&
        region.opened->content == region.opened->mapping + ticket.inner) {
      ++region.opens;
      *address = own;
      return CUDA_SUCCESS;
    }
  const Opened opened = open_share(ticket);
  if (opened.content == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  *address = add_opened(opened, ticket.bytes, context);
  return CUDA_SUCCESS;
}

CUresult cuIpcCloseMemHandle(CUdeviceptr address) {
  CUcontext context = nullptr;
  {
    const std::lock_guard lock(process().mutex);
    const auto at = process().regions.find(address);
    if (at == process().regions.end() || at->second.kind != RegionKind::kOpened)
      return CUDA_ERROR_INVALID_VALUE;
    if (const CUresult result = check_no_capture(); result != CUDA_SUCCESS) return result;
    context = at->second.context;
  }
  // Work may still use it.
  if (const CUresult result = wait_context(context); result != CUDA_SUCCESS) return result;
  const std::lock_guard lock(process().mutex);
  const auto at = process().regions.find(address);
  if (at == process().regions.end()) return CUDA_ERROR_INVALID_VALUE;
  if (--at->second.opens == 0) free_region(at);
  return CUDA_SUCCESS;
}

}  // extern "C"
// NOLINTEND(readability-identifier-naming)
