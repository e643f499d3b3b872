// Functions of before CUDA 4. It is not documented how a driver of today reads an address of 32
// bits: here it stands for the address whose lower half it is.
#include <algorithm>
#include <map>

#include "tests/standin/api.h"
#include "tests/standin/process.h"

using namespace regatta::standin;

namespace {

constexpr std::size_t kMost = ~0U;

// Whole addresses by their lower halves. Under the lock.
std::map<unsigned, CUdeviceptr>& addresses() {
  static auto* const all = new std::map<unsigned, CUdeviceptr>;
  return *all;
}

CUresult shorten(CUresult result, CUdeviceptr whole, unsigned* address) {
  if (result != CUDA_SUCCESS) return result;
  const std::lock_guard lock(process().mutex);
  *address = static_cast<unsigned>(whole);
  addresses()[*address] = whole;
  return result;
}

CUdeviceptr whole_address(unsigned address) {
  const std::lock_guard lock(process().mutex);
  const auto at = addresses().find(address);
  return at == addresses().end() ? address : at->second;
}

}  // namespace

// NOLINTBEGIN(readability-identifier-naming): the names are the driver's
extern "C" {

CUresult cuCtxCreate(CUcontext* context, unsigned flags, CUdevice device) {
  const CUresult result = cuCtxCreate_v2(context, flags, device);
  if (result != CUDA_SUCCESS) return result;
  const std::lock_guard lock(process().mutex);
  (*context)->is_of_first_version = true;
  return result;
}

CUresult cuCtxDestroy(CUcontext context) {
  return cuCtxDestroy_v2(context);
}

CUresult cuCtxDetach(CUcontext context) {
  return cuCtxDestroy_v2(context);
}

CUresult cuMemGetInfo(unsigned* free, unsigned* total) {
  const std::lock_guard lock(process().mutex);
  CUcontext context = nullptr;
  if (const CUresult result = current_context(&context); result != CUDA_SUCCESS) return result;
  const std::uint64_t left = context->device->link.call({.message = PacketType::kMemory}).bytes;
  if (free != nullptr) *free = static_cast<unsigned>(std::min<std::uint64_t>(left, kMost));
  if (total != nullptr)
    *total = static_cast<unsigned>(std::min<std::uint64_t>(context->device->bytes, kMost));
  return CUDA_SUCCESS;
}

CUresult cuDeviceTotalMem(unsigned* bytes, CUdevice device) {
  std::size_t wide = 0;
  const CUresult result = cuDeviceTotalMem_v2(bytes == nullptr ? nullptr : &wide, device);
  if (result == CUDA_SUCCESS) *bytes = static_cast<unsigned>(std::min(wide, kMost));
  return result;
}

CUresult cuMemAlloc(unsigned* address, unsigned bytes) {
  CUdeviceptr whole = 0;
  return shorten(cuMemAlloc_v2(address == nullptr ? nullptr : &whole, bytes), whole, address);
}

CUresult cuMemAllocPitch(unsigned* address, unsigned* pitch, unsigned width, unsigned height,
                         unsigned element_bytes) {
  CUdeviceptr whole = 0;
  std::size_t wide_pitch = 0;
  if (address == nullptr || pitch == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUresult result = cuMemAllocPitch_v2(&whole, &wide_pitch, width, height, element_bytes);
  *pitch = static_cast<unsigned>(wide_pitch);
  return shorten(result, whole, address);
}

CUresult cuMemFree(unsigned address) {
  const CUresult result = cuMemFree_v2(whole_address(address));
  const std::lock_guard lock(process().mutex);
  if (result == CUDA_SUCCESS) addresses().erase(address);
  return result;
}

CUresult cuMemcpyHtoD(unsigned to, const void* from, unsigned bytes) {
  return cuMemcpyHtoD_v2(whole_address(to), from, bytes);
}

CUresult cuMemcpyDtoH(void* to, unsigned from, unsigned bytes) {
  return cuMemcpyDtoH_v2(to, whole_address(from), bytes);
}

CUresult cuArrayCreate(CUarray* array, const CUDA_ARRAY_DESCRIPTOR_v1* shape) {
  if (shape == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUDA_ARRAY_DESCRIPTOR wide{shape->Width, shape->Height, shape->Format, shape->NumChannels};
  return cuArrayCreate_v2(array, &wide);
}

CUresult cuArray3DCreate(CUarray* array, const CUDA_ARRAY3D_DESCRIPTOR_v1* shape) {
  if (shape == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUDA_ARRAY3D_DESCRIPTOR wide{shape->Width,  shape->Height,      shape->Depth,
                                     shape->Format, shape->NumChannels, shape->Flags};
  return cuArray3DCreate_v2(array, &wide);
}

CUresult cuLaunch(CUfunction function) {
  return cuLaunchGrid(function, 1, 1);
}

CUresult cuLaunchGrid(CUfunction function, int width, int height) {
  return cuLaunchGridAsync(function, width, height, nullptr);
}

CUresult cuLaunchGridAsync(CUfunction function, int width, int height, CUstream stream) {
  if (width <= 0 || height <= 0) return CUDA_ERROR_INVALID_VALUE;
  return cuLaunchKernel(function, static_cast<unsigned>(width), static_cast<unsigned>(height), 1, 1,
                        1, 1, 0, stream, nullptr, nullptr);
}

CUresult cuLaunchCooperativeKernelMultiDevice(CUDA_LAUNCH_PARAMS* launches, unsigned devices,
                                              unsigned) {
  if (launches == nullptr || devices == 0) return CUDA_ERROR_INVALID_VALUE;
  for (unsigned i = 0; i < devices; ++i) {
    const CUDA_LAUNCH_PARAMS& one = launches[i];
    const CUresult result = cuLaunchCooperativeKernel(
        one.function, one.gridDimX, one.gridDimY, one.gridDimZ, one.blockDimX, one.blockDimY,
        one.blockDimZ, one.sharedMemBytes, one.hStream, one.kernelParams);
    if (result != CUDA_SUCCESS) return result;
  }
  return CUDA_SUCCESS;
}

}  // extern "C"
// NOLINTEND(readability-identifier-naming)
