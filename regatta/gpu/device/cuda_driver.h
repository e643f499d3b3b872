// device/cuda_driver.h: the CUDA driver, found when the program runs: it starts without.
#pragma once

#include <cstddef>
#include <string>

#include "regatta/base/core/result.h"
#include "regatta/gpu/device/abi/cuda.h"

namespace regatta::device {

struct CudaDriver {
  CUresult (*init)(unsigned flags) = nullptr;
  CUresult (*get_error_string)(CUresult, const char** text) = nullptr;
  CUresult (*primary_context_retain)(CUcontext*, CUdevice) = nullptr;
  CUresult (*primary_context_release)(CUdevice) = nullptr;
  CUresult (*context_push)(CUcontext) = nullptr;
  CUresult (*context_pop)(CUcontext*) = nullptr;
  CUresult (*pointer_get_attribute)(void* data, int attribute, CUdeviceptr) = nullptr;
  CUresult (*get_address_range)(CUdeviceptr* base, std::size_t* bytes, CUdeviceptr) = nullptr;
  CUresult (*alloc)(CUdeviceptr*, std::size_t bytes) = nullptr;
  CUresult (*free)(CUdeviceptr) = nullptr;
  CUresult (*alloc_host)(void**, std::size_t bytes) = nullptr;
  CUresult (*free_host)(void*) = nullptr;
  CUresult (*copy_to_host)(void* to, CUdeviceptr from, std::size_t bytes, CUstream) = nullptr;
  CUresult (*copy_to_device)(CUdeviceptr to, const void* from, std::size_t bytes,
                             CUstream) = nullptr;
  // Also between two devices: addresses are unique in a process.
  CUresult (*copy)(CUdeviceptr to, CUdeviceptr from, std::size_t bytes, CUstream) = nullptr;
  CUresult (*stream_create)(CUstream*, unsigned flags) = nullptr;
  CUresult (*stream_destroy)(CUstream) = nullptr;
  CUresult (*stream_synchronize)(CUstream) = nullptr;
  CUresult (*event_create)(CUevent*, unsigned flags) = nullptr;
  CUresult (*event_destroy)(CUevent) = nullptr;
  CUresult (*event_record)(CUevent, CUstream) = nullptr;
  CUresult (*event_synchronize)(CUevent) = nullptr;
  CUresult (*ipc_get_handle)(CUipcMemHandle*, CUdeviceptr) = nullptr;
  CUresult (*ipc_open_handle)(CUdeviceptr*, CUipcMemHandle, unsigned flags) = nullptr;
  CUresult (*ipc_close_handle)(CUdeviceptr) = nullptr;
};

// Loads and starts the driver; it stays loaded. kUnsupported: it is not there, too old, or finds no
// device. `library`: another one in its place, for tests.
Result<CudaDriver> load_cuda_driver(const std::string& library = "libcuda.so.1");

// An error when `result` is one: "cannot copy to device 1: out of memory".
Status check(const CudaDriver& driver, CUresult result, const std::string& what);

}  // namespace regatta::device
