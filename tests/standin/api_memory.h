// tests/standin/api_memory.h: the functions of the driver about memory.
#pragma once

#include "regatta/gpu/device/abi/cuda_sharing.h"

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
CUresult cuMemsetD16_v2(CUdeviceptr to, unsigned short value, std::size_t count);
CUresult cuMemsetD16Async(CUdeviceptr to, unsigned short value, std::size_t count, CUstream);
CUresult cuMemsetD2D8_v2(CUdeviceptr to, std::size_t pitch, unsigned char value, std::size_t width,
                         std::size_t height);
CUresult cuMemsetD2D16_v2(CUdeviceptr to, std::size_t pitch, unsigned short value,
                          std::size_t width, std::size_t height);
CUresult cuMemsetD2D32_v2(CUdeviceptr to, std::size_t pitch, unsigned value, std::size_t width,
                          std::size_t height);
CUresult cuMemsetD2D8Async(CUdeviceptr to, std::size_t pitch, unsigned char value,
                           std::size_t width, std::size_t height, CUstream);
CUresult cuMemsetD2D16Async(CUdeviceptr to, std::size_t pitch, unsigned short value,
                            std::size_t width, std::size_t height, CUstream);
CUresult cuMemsetD2D32Async(CUdeviceptr to, std::size_t pitch, unsigned value, std::size_t width,
                            std::size_t height, CUstream);
CUresult cuMemcpyPeer(CUdeviceptr to, CUcontext to_context, CUdeviceptr from,
                      CUcontext from_context, std::size_t bytes);
CUresult cuMemcpyPeerAsync(CUdeviceptr to, CUcontext to_context, CUdeviceptr from,
                           CUcontext from_context, std::size_t bytes, CUstream);
CUresult cuMemcpyBatchAsync(CUdeviceptr* to, CUdeviceptr* from, std::size_t* bytes,
                            std::size_t count, CUmemcpyAttributes*, std::size_t* firsts,
                            std::size_t attribute_count, std::size_t* failed, CUstream);
CUresult cuMemcpyBatchAsync_v2(CUdeviceptr* to, CUdeviceptr* from, std::size_t* bytes,
                               std::size_t count, CUmemcpyAttributes*, std::size_t* firsts,
                               std::size_t attribute_count, CUstream);
CUresult cuMemcpy2D_v2(const CUDA_MEMCPY2D*);
CUresult cuMemcpy2DUnaligned_v2(const CUDA_MEMCPY2D*);
CUresult cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D*, CUstream);
CUresult cuMemcpy3D_v2(const CUDA_MEMCPY3D*);
CUresult cuMemcpy3DAsync_v2(const CUDA_MEMCPY3D*, CUstream);
CUresult cuMemcpy3DPeer(const CUDA_MEMCPY3D_PEER*);
CUresult cuMemcpy3DPeerAsync(const CUDA_MEMCPY3D_PEER*, CUstream);
CUresult cuMemcpyHtoA_v2(CUarray to, std::size_t offset, const void* from, std::size_t bytes);
CUresult cuMemcpyAtoH_v2(void* to, CUarray from, std::size_t offset, std::size_t bytes);
CUresult cuMemcpyHtoAAsync_v2(CUarray to, std::size_t offset, const void* from, std::size_t bytes,
                              CUstream);
CUresult cuMemcpyAtoHAsync_v2(void* to, CUarray from, std::size_t offset, std::size_t bytes,
                              CUstream);
CUresult cuMemcpyDtoA_v2(CUarray to, std::size_t offset, CUdeviceptr from, std::size_t bytes);
CUresult cuMemcpyAtoD_v2(CUdeviceptr to, CUarray from, std::size_t offset, std::size_t bytes);
CUresult cuMemcpyAtoA_v2(CUarray to, std::size_t to_offset, CUarray from, std::size_t from_offset,
                         std::size_t bytes);

CUresult cuArrayCreate_v2(CUarray*, const CUDA_ARRAY_DESCRIPTOR*);
CUresult cuArray3DCreate_v2(CUarray*, const CUDA_ARRAY3D_DESCRIPTOR*);
CUresult cuArrayDestroy(CUarray);
CUresult cuArrayGetDescriptor_v2(CUDA_ARRAY_DESCRIPTOR*, CUarray);
CUresult cuArray3DGetDescriptor_v2(CUDA_ARRAY3D_DESCRIPTOR*, CUarray);
CUresult cuMipmappedArrayCreate(CUmipmappedArray*, const CUDA_ARRAY3D_DESCRIPTOR*, unsigned levels);
CUresult cuMipmappedArrayGetLevel(CUarray*, CUmipmappedArray, unsigned level);
CUresult cuMipmappedArrayDestroy(CUmipmappedArray);

CUresult cuPointerGetAttributes(unsigned count, int* attributes, void** data, CUdeviceptr);
CUresult cuPointerSetAttribute(const void* value, int attribute, CUdeviceptr);
CUresult cuMemHostRegister_v2(void*, std::size_t bytes, unsigned flags);
CUresult cuMemHostUnregister(void*);
CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr*, void*, unsigned flags);
CUresult cuMemHostGetFlags(unsigned* flags, void*);
CUresult cuMemPrefetchAsync(CUdeviceptr, std::size_t bytes, CUdevice place, CUstream);
CUresult cuMemPrefetchAsync_v2(CUdeviceptr, std::size_t bytes, CUmemLocation, unsigned flags,
                               CUstream);
CUresult cuMemAdvise(CUdeviceptr, std::size_t bytes, int advice, CUdevice place);
CUresult cuMemAdvise_v2(CUdeviceptr, std::size_t bytes, int advice, CUmemLocation);
CUresult cuMemRangeGetAttribute(void* data, std::size_t data_bytes, int attribute, CUdeviceptr,
                                std::size_t bytes);

CUresult cuIpcGetMemHandle(CUipcMemHandle*, CUdeviceptr);
CUresult cuIpcOpenMemHandle_v2(CUdeviceptr*, CUipcMemHandle, unsigned flags);
CUresult cuIpcCloseMemHandle(CUdeviceptr);

CUresult cuMemAllocAsync(CUdeviceptr*, std::size_t bytes, CUstream);
CUresult cuMemAllocFromPoolAsync(CUdeviceptr*, std::size_t bytes, CUmemoryPool, CUstream);
CUresult cuMemFreeAsync(CUdeviceptr, CUstream);
CUresult cuMemPoolCreate(CUmemoryPool*, const CUmemPoolProps*);
CUresult cuMemPoolDestroy(CUmemoryPool);
CUresult cuMemPoolTrimTo(CUmemoryPool, std::size_t bytes_to_keep);
CUresult cuMemPoolGetAttribute(CUmemoryPool, int attribute, void* value);
CUresult cuMemPoolSetAttribute(CUmemoryPool, int attribute, void* value);
CUresult cuMemPoolExportToShareableHandle(void* file, CUmemoryPool, int type,
                                          unsigned long long flags);
CUresult cuMemPoolImportFromShareableHandle(CUmemoryPool*, void* file, int type,
                                            unsigned long long flags);
CUresult cuMemPoolExportPointer(CUmemPoolPtrExportData*, CUdeviceptr);
CUresult cuMemPoolImportPointer(CUdeviceptr*, CUmemoryPool, CUmemPoolPtrExportData*);
CUresult cuMemPoolSetAccess(CUmemoryPool, const CUmemAccessDesc*, std::size_t count);
CUresult cuMemPoolGetAccess(unsigned* flags, CUmemoryPool, CUmemLocation*);
CUresult cuDeviceGetDefaultMemPool(CUmemoryPool*, CUdevice);
CUresult cuDeviceGetMemPool(CUmemoryPool*, CUdevice);
CUresult cuDeviceSetMemPool(CUdevice, CUmemoryPool);

CUresult cuMemGetAllocationGranularity(std::size_t*, const CUmemAllocationProp*, int option);
CUresult cuMemCreate(CUmemGenericAllocationHandle*, std::size_t bytes, const CUmemAllocationProp*,
                     unsigned long long flags);
CUresult cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp*, CUmemGenericAllocationHandle);
CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle*, void* address);
CUresult cuMemExportToShareableHandle(void* file, CUmemGenericAllocationHandle, int type,
                                      unsigned long long flags);
CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle*, void* file, int type);
CUresult cuMemGetAccess(unsigned long long* flags, const CUmemLocation*, CUdeviceptr);
CUresult cuMemRelease(CUmemGenericAllocationHandle);
CUresult cuMemAddressReserve(CUdeviceptr*, std::size_t bytes, std::size_t alignment, CUdeviceptr,
                             unsigned long long flags);
CUresult cuMemAddressFree(CUdeviceptr, std::size_t bytes);
CUresult cuMemMap(CUdeviceptr, std::size_t bytes, std::size_t offset, CUmemGenericAllocationHandle,
                  unsigned long long flags);
CUresult cuMemUnmap(CUdeviceptr, std::size_t bytes);
CUresult cuMemSetAccess(CUdeviceptr, std::size_t bytes, const CUmemAccessDesc*, std::size_t count);
}
// NOLINTEND(readability-identifier-naming)
