// Memory that processes share with each other. It counts where it was made; opened memory is not
// counted. When its owner frees it, or ends, while another process has it open, the driver keeps it
// for one of them: NVML reports for which.
#include "regatta/gpu/sharing/internal/hook/exports.h"
#include "regatta/gpu/sharing/internal/hook/memory.h"
#include "regatta/gpu/sharing/internal/hook/swap.h"

namespace regatta::sharing::hook {

std::atomic<bool> shares_memory = false;

namespace {

// Shared memory stays on the device: another process could use it while it is swapped out.
template <typename Call>
CUresult share(Call&& call) {
  if (!pin_process()) return CUDA_ERROR_NOT_SUPPORTED;
  const CUresult result = call();
  if (result == CUDA_SUCCESS) shares_memory.store(true, std::memory_order_relaxed);
  return result;
}

}  // namespace

CUresult show_to_others(DriverFunction<DriverEntry::cuIpcGetMemHandle> real, CUipcMemHandle* handle,
                        CUdeviceptr address) {
  // Another process could use what can be away while it is.
  if (find_swappable(address)) return CUDA_ERROR_NOT_SUPPORTED;
  return share([&] { return real(handle, address); });
}

CUresult show_to_others(DriverFunction<DriverEntry::cuMemExportToShareableHandle> real, void* file,
                        CUmemGenericAllocationHandle handle, int type, unsigned long long flags) {
  return share([&] { return real(file, handle, type, flags); });
}

CUresult show_to_others(DriverFunction<DriverEntry::cuMemPoolExportPointer> real,
                        CUmemPoolPtrExportData* data, CUdeviceptr address) {
  return share([&] { return real(data, address); });
}

CUresult open_from_others(DriverFunction<DriverEntry::cuIpcOpenMemHandle> real,
                          CUdeviceptr* address, CUipcMemHandle handle, unsigned flags) {
  return share([&] { return real(address, handle, flags); });
}

CUresult open_from_others(DriverFunction<DriverEntry::cuMemImportFromShareableHandle> real,
                          CUmemGenericAllocationHandle* handle, void* file, int type) {
  return share([&] { return real(handle, file, type); });
}

CUresult open_from_others(DriverFunction<DriverEntry::cuMemPoolImportPointer> real,
                          CUdeviceptr* address, CUmemoryPool pool, CUmemPoolPtrExportData* data) {
  return share([&] { return real(address, pool, data); });
}

CUresult close_to_others(DriverFunction<DriverEntry::cuIpcCloseMemHandle> real,
                         CUdeviceptr address) {
  const CUresult result = real(address);
  if (result == CUDA_SUCCESS) settle_shares(SettleMode::kAlways);
  return result;
}

}  // namespace regatta::sharing::hook
