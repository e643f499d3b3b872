#include "regatta/gpu/device/cuda_driver.h"

#include <string>

#include <dlfcn.h>

#include "regatta/base/os/process.h"

namespace regatta::device {
namespace {

// True when it has all of them.
bool find_all(void* library, CudaDriver& cuda) {
  return os::find_symbol(library, "cuInit", cuda.init) &&
         os::find_symbol(library, "cuGetErrorString", cuda.get_error_string) &&
         os::find_symbol(library, "cuDevicePrimaryCtxRetain", cuda.primary_context_retain) &&
         os::find_symbol(library, "cuDevicePrimaryCtxRelease_v2", cuda.primary_context_release) &&
         os::find_symbol(library, "cuCtxPushCurrent_v2", cuda.context_push) &&
         os::find_symbol(library, "cuCtxPopCurrent_v2", cuda.context_pop) &&
         os::find_symbol(library, "cuPointerGetAttribute", cuda.pointer_get_attribute) &&
         os::find_symbol(library, "cuMemGetAddressRange_v2", cuda.get_address_range) &&
         os::find_symbol(library, "cuMemAlloc_v2", cuda.alloc) &&
         os::find_symbol(library, "cuMemFree_v2", cuda.free) &&
         os::find_symbol(library, "cuMemAllocHost_v2", cuda.alloc_host) &&
         os::find_symbol(library, "cuMemFreeHost", cuda.free_host) &&
         os::find_symbol(library, "cuMemcpyDtoHAsync_v2", cuda.copy_to_host) &&
         os::find_symbol(library, "cuMemcpyHtoDAsync_v2", cuda.copy_to_device) &&
         os::find_symbol(library, "cuMemcpyAsync", cuda.copy) &&
         os::find_symbol(library, "cuStreamCreate", cuda.stream_create) &&
         os::find_symbol(library, "cuStreamDestroy_v2", cuda.stream_destroy) &&
         os::find_symbol(library, "cuStreamSynchronize", cuda.stream_synchronize) &&
         os::find_symbol(library, "cuEventCreate", cuda.event_create) &&
         os::find_symbol(library, "cuEventDestroy_v2", cuda.event_destroy) &&
         os::find_symbol(library, "cuEventRecord", cuda.event_record) &&
         os::find_symbol(library, "cuEventSynchronize", cuda.event_synchronize) &&
         os::find_symbol(library, "cuIpcGetMemHandle", cuda.ipc_get_handle) &&
         os::find_symbol(library, "cuIpcOpenMemHandle_v2", cuda.ipc_open_handle) &&
         os::find_symbol(library, "cuIpcCloseMemHandle", cuda.ipc_close_handle);
}

}  // namespace

Result<CudaDriver> load_cuda_driver(const std::string& library) {
  void* const opened = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (opened == nullptr)
    return Error{Code::kUnsupported, "there is no CUDA driver on this machine (" + library + ")"};
  CudaDriver driver;
  if (!find_all(opened, driver))
    return Error{Code::kUnsupported, library + " is too old: CUDA 11 or later is needed"};
  const Status started = check(driver, driver.init(0), "start the CUDA driver");
  if (!started) return Error{Code::kUnsupported, started.error().message};
  return driver;
}

Status check(const CudaDriver& driver, CUresult result, const std::string& what) {
  if (result == CUDA_SUCCESS) return {};
  const char* text = nullptr;
  if (driver.get_error_string(result, &text) != CUDA_SUCCESS || text == nullptr) text = "unknown";
  return Error{Code::kUnavailable, "cannot " + what + ": " + text};
}

}  // namespace regatta::device
