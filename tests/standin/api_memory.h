// tests/standin/api_memory.h: the functions of the driver about memory.
#pragma once

#include "regatta/gpu/abi/cuda_sharing.h"

// NOLINTBEGIN(readability-identifier-naming): the names are the driver's
extern "C" {
CUresult cuMemGetInfo_v2(std::size_t* free, std::size_t* total);
CUresult cuMemAlloc_v2(CUdeviceptr*, std::size_t bytes);
CUresult cuMemAllocPitch_v2(CUdeviceptr*, std::size_t* pitch, std::size_t width, std::size_t height,
                            unsigned element_bytes);
CUresult cuMemAllocManaged(CUdeviceptr*, std::size_t bytes, unsigned flags);
CUresult cuMemFree_v2(CUdeviceptr);
CUresult cuMemAllocHost_v2(void**, std::size_t bytes);
CUresult cuMemHostAlloc(void**, std::size_t bytes, unsigned flags);
CUresult cuMemFreeHost(void*);
CUresult cuMemGetAddressRange_v2(CUdeviceptr* base, std::size_t* bytes, CUdeviceptr);
CUresult cuPointerGetAttribute(void* data, int attribute, CUdeviceptr);
CUresult cuArrayCreate_v2(CUarray*, const CUDA_ARRAY_DESCRIPTOR*);
CUresult cuArray3DCreate_v2(CUarray*, const CUDA_ARRAY3D_DESCRIPTOR*);
CUresult cuArrayDestroy(CUarray);
CUresult cuMipmappedArrayCreate(CUmipmappedArray*, const CUDA_ARRAY3D_DESCRIPTOR*, unsigned levels);
CUresult cuMipmappedArrayDestroy(CUmipmappedArray);
CUresult cuMemcpy(CUdeviceptr to, CUdeviceptr from, std::size_t bytes);
CUresult cuMemcpyHtoD_v2(CUdeviceptr to, const void* from, std::size_t bytes);
CUresult cuMemcpyDtoH_v2(void* to, CUdeviceptr from, std::size_t bytes);
CUresult cuMemcpyDtoD_v2(CUdeviceptr to, CUdeviceptr from, std::size_t bytes);
CUresult cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, std::size_t bytes, CUstream);
CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void* from, std::size_t bytes, CUstream);
CUresult cuMemcpyDtoHAsync_v2(void* to, CUdeviceptr from, std::size_t bytes, CUstream);
CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, std::size_t bytes, CUstream);
CUresult cuMemsetD8_v2(CUdeviceptr to, unsigned char value, std::size_t count);
CUresult cuMemsetD32_v2(CUdeviceptr to, unsigned value, std::size_t count);
CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, std::size_t count, CUstream);
CUresult cuMemsetD32Async(CUdeviceptr to, unsigned value, std::size_t count, CUstream);

CUresult cuMemAllocAsync(CUdeviceptr*, std::size_t bytes, CUstream);
CUresult cuMemAllocFromPoolAsync(CUdeviceptr*, std::size_t bytes, CUmemoryPool, CUstream);
CUresult cuMemFreeAsync(CUdeviceptr, CUstream);
CUresult cuMemPoolCreate(CUmemoryPool*, const CUmemPoolProps*);
CUresult cuMemPoolDestroy(CUmemoryPool);
CUresult cuMemPoolTrimTo(CUmemoryPool, std::size_t bytes_to_keep);
CUresult cuMemPoolGetAttribute(CUmemoryPool, int attribute, void* value);
CUresult cuMemPoolSetAttribute(CUmemoryPool, int attribute, void* value);
CUresult cuDeviceGetDefaultMemPool(CUmemoryPool*, CUdevice);
CUresult cuDeviceGetMemPool(CUmemoryPool*, CUdevice);
CUresult cuDeviceSetMemPool(CUdevice, CUmemoryPool);

CUresult cuMemGetAllocationGranularity(std::size_t*, const CUmemAllocationProp*, int option);
CUresult cuMemCreate(CUmemGenericAllocationHandle*, std::size_t bytes, const CUmemAllocationProp*,
                     unsigned long long flags);
CUresult cuMemRelease(CUmemGenericAllocationHandle);
CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle*, void* address);
CUresult cuMemAddressReserve(CUdeviceptr*, std::size_t bytes, std::size_t alignment, CUdeviceptr,
                             unsigned long long flags);
CUresult cuMemAddressFree(CUdeviceptr, std::size_t bytes);
CUresult cuMemMap(CUdeviceptr, std::size_t bytes, std::size_t offset, CUmemGenericAllocationHandle,
                  unsigned long long flags);
CUresult cuMemUnmap(CUdeviceptr, std::size_t bytes);
CUresult cuMemSetAccess(CUdeviceptr, std::size_t bytes, const CUmemAccessDesc*, std::size_t count);
}
// NOLINTEND(readability-identifier-naming)
