#include "regatta/gpu/device/cuda_driver.h"

#include <string>

#include <dlfcn.h>

namespace regatta::device {
namespace {

template <typename Function>
bool find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  return function != nullptr;
}

// True when it has all of them.
bool find_all(void* library, CudaDriver& cuda) {
  return find(library, "cuInit", cuda.init) &&
         find(library, "cuGetErrorString", cuda.get_error_string) &&
         find(library, "cuDevicePrimaryCtxRetain", cuda.primary_context_retain) &&
         find(library, "cuDevicePrimaryCtxRelease_v2", cuda.primary_context_release) &&
         find(library, "cuCtxPushCurrent_v2", cuda.context_push) &&
         find(library, "cuCtxPopCurrent_v2", cuda.context_pop) &&
         find(library, "cuPointerGetAttribute", cuda.pointer_get_attribute) &&
         find(library, "cuMemGetAddressRange_v2", cuda.get_address_range) &&
         find(library, "cuMemAlloc_v2", cuda.alloc) && find(library, "cuMemFree_v2", cuda.free) &&
         find(library, "cuMemAllocHost_v2", cuda.alloc_host) &&
         find(library, "cuMemFreeHost", cuda.free_host) &&
         find(library, "cuMemcpyDtoHAsync_v2", cuda.copy_to_host) &&
         find(library, "cuMemcpyHtoDAsync_v2", cuda.copy_to_device) &&
         find(library, "cuMemcpyAsync", cuda.copy) &&
         find(library, "cuStreamCreate", cuda.stream_create) &&
         find(library, "cuStreamDestroy_v2", cuda.stream_destroy) &&
         find(library, "cuStreamSynchronize", cuda.stream_synchronize) &&
         find(library, "cuEventCreate", cuda.event_create) &&
         find(library, "cuEventDestroy_v2", cuda.event_destroy) &&
         find(library, "cuEventRecord", cuda.event_record) &&
         find(library, "cuEventSynchronize", cuda.event_synchronize) &&
         find(library, "cuIpcGetMemHandle", cuda.ipc_get_handle) &&
         find(library, "cuIpcOpenMemHandle_v2", cuda.ipc_open_handle) &&
         find(library, "cuIpcCloseMemHandle", cuda.ipc_close_handle);
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
