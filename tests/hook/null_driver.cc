// A libcuda.so.1 that does nothing, at once: what is left of a call's cost is the hook's.
#include "regatta/gpu/device/abi/cuda_sharing.h"

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
CUresult cuCtxPushCurrent_v2(CUcontext) {
  return CUDA_SUCCESS;
}
CUresult cuCtxPopCurrent_v2(CUcontext*) {
  return CUDA_SUCCESS;
}
CUresult cuDeviceGetCount(int* count) {
  *count = 1;
  return CUDA_SUCCESS;
}
CUresult cuEventCreate(CUevent* event, unsigned) {
  *event = reinterpret_cast<CUevent>(0x20);
  return CUDA_SUCCESS;
}
CUresult cuEventDestroy_v2(CUevent) {
  return CUDA_SUCCESS;
}
CUresult cuEventRecord(CUevent, CUstream) {
  return CUDA_SUCCESS;
}
CUresult cuEventSynchronize(CUevent) {
  return CUDA_SUCCESS;
}
CUresult cuEventQuery(CUevent) {
  return CUDA_SUCCESS;
}
// As long as a kernel that a program launches in a loop takes at least: the time of a launch.
CUresult cuEventElapsedTime(float* milliseconds, CUevent, CUevent) {
  *milliseconds = 5e-3F;
  return CUDA_SUCCESS;
}
CUresult cuStreamIsCapturing(CUstream, int* status) {
  *status = CU_STREAM_CAPTURE_STATUS_NONE;
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
