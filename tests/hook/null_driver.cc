// A libcuda.so.1 that does nothing, at once: what is left of a call's cost is the hook's.
#include "regatta/gpu/abi/cuda_sharing.h"

// NOLINTBEGIN(readability-identifier-naming): the names are the driver's
extern "C" {
CUresult cuInit(unsigned) {
  return CUDA_SUCCESS;
}
CUresult cuDriverGetVersion(int* version) {
  *version = 13000;
  return CUDA_SUCCESS;
}
CUresult cuCtxCreate_v2(CUcontext* context, unsigned, CUdevice) {
  *context = reinterpret_cast<CUcontext>(0x10);
  return CUDA_SUCCESS;
}
CUresult cuCtxGetCurrent(CUcontext* context) {
  *context = reinterpret_cast<CUcontext>(0x10);
  return CUDA_SUCCESS;
}
CUresult cuCtxGetDevice(CUdevice* device) {
  *device = 0;
  return CUDA_SUCCESS;
}
CUresult cuMemAlloc_v2(CUdeviceptr* address, std::size_t) {
  *address = 0x7f0000000000;
  return CUDA_SUCCESS;
}
CUresult cuMemFree_v2(CUdeviceptr) {
  return CUDA_SUCCESS;
}
CUresult cuLaunchKernel(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                        unsigned, CUstream, void**, void**) {
  return CUDA_SUCCESS;
}
}
// NOLINTEND(readability-identifier-naming)
