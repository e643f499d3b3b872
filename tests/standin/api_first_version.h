// tests/standin/api_first_version.h: functions of before CUDA 4 that drivers still export under the
// names without a version. Addresses and sizes have 32 bits.
#pragma once

#include "regatta/gpu/device/abi/cuda_sharing.h"

// NOLINTBEGIN(readability-identifier-naming): the names are the driver's
extern "C" {
CUresult cuCtxCreate(CUcontext*, unsigned flags, CUdevice);
CUresult cuCtxDestroy(CUcontext);
CUresult cuCtxDetach(CUcontext);
CUresult cuMemGetInfo(unsigned* free, unsigned* total);
CUresult cuDeviceTotalMem(unsigned* bytes, CUdevice);
CUresult cuMemAlloc(unsigned* address, unsigned bytes);
CUresult cuMemAllocPitch(unsigned* address, unsigned* pitch, unsigned width, unsigned height,
                         unsigned element_bytes);
CUresult cuMemFree(unsigned address);
CUresult cuMemcpyHtoD(unsigned to, const void* from, unsigned bytes);
CUresult cuMemcpyDtoH(void* to, unsigned from, unsigned bytes);
CUresult cuArrayCreate(CUarray*, const CUDA_ARRAY_DESCRIPTOR_v1*);
CUresult cuArray3DCreate(CUarray*, const CUDA_ARRAY3D_DESCRIPTOR_v1*);
CUresult cuLaunch(CUfunction);
CUresult cuLaunchGrid(CUfunction, int width, int height);
CUresult cuLaunchGridAsync(CUfunction, int width, int height, CUstream);
CUresult cuLaunchCooperativeKernelMultiDevice(CUDA_LAUNCH_PARAMS*, unsigned devices,
                                              unsigned flags);
}
// NOLINTEND(readability-identifier-naming)
