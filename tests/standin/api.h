// tests/standin/api.h: the functions of the driver that the stand-in exports.
#pragma once

#include "tests/standin/abi.h"

// NOLINTBEGIN(readability-identifier-naming): the names are the driver's
extern "C" {
CUresult cuInit(unsigned flags);
CUresult cuDriverGetVersion(int* version);
CUresult cuGetErrorName(CUresult, const char** text);
CUresult cuGetErrorString(CUresult, const char** text);
CUresult cuGetProcAddress(const char* symbol, void** function, int version, std::uint64_t flags);
CUresult cuGetProcAddress_v2(const char* symbol, void** function, int version, std::uint64_t flags,
                             int* status);
CUresult cuGetExportTable(const void** table, const CUuuid* id);

CUresult cuDeviceGet(CUdevice*, int ordinal);
CUresult cuDeviceGetCount(int* count);
CUresult cuDeviceGetName(char* name, int size, CUdevice);
CUresult cuDeviceGetUuid(CUuuid*, CUdevice);
CUresult cuDeviceGetUuid_v2(CUuuid*, CUdevice);
CUresult cuDeviceTotalMem_v2(std::size_t* bytes, CUdevice);
CUresult cuDeviceGetAttribute(int* value, int attribute, CUdevice);

CUresult cuCtxCreate_v2(CUcontext*, unsigned flags, CUdevice);
CUresult cuCtxCreate_v4(CUcontext*, void* parameters, unsigned flags, CUdevice);
CUresult cuCtxDestroy_v2(CUcontext);
CUresult cuCtxPushCurrent_v2(CUcontext);
CUresult cuCtxPopCurrent_v2(CUcontext*);
CUresult cuCtxSetCurrent(CUcontext);
CUresult cuCtxGetCurrent(CUcontext*);
CUresult cuCtxGetDevice(CUdevice*);
CUresult cuCtxGetFlags(unsigned* flags);
CUresult cuCtxSynchronize();
CUresult cuDevicePrimaryCtxRetain(CUcontext*, CUdevice);
CUresult cuDevicePrimaryCtxRelease_v2(CUdevice);
CUresult cuDevicePrimaryCtxReset_v2(CUdevice);
CUresult cuDevicePrimaryCtxGetState(CUdevice, unsigned* flags, int* active);

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
CUresult cuMemAddressReserve(CUdeviceptr*, std::size_t bytes, std::size_t alignment, CUdeviceptr,
                             unsigned long long flags);
CUresult cuMemAddressFree(CUdeviceptr, std::size_t bytes);
CUresult cuMemMap(CUdeviceptr, std::size_t bytes, std::size_t offset, CUmemGenericAllocationHandle,
                  unsigned long long flags);
CUresult cuMemUnmap(CUdeviceptr, std::size_t bytes);
CUresult cuMemSetAccess(CUdeviceptr, std::size_t bytes, const CUmemAccessDesc*, std::size_t count);

CUresult cuStreamCreate(CUstream*, unsigned flags);
CUresult cuStreamCreateWithPriority(CUstream*, unsigned flags, int priority);
CUresult cuStreamDestroy_v2(CUstream);
CUresult cuStreamSynchronize(CUstream);
CUresult cuStreamQuery(CUstream);
CUresult cuStreamWaitEvent(CUstream, CUevent, unsigned flags);
CUresult cuStreamGetFlags(CUstream, unsigned* flags);
CUresult cuStreamGetPriority(CUstream, int* priority);
CUresult cuStreamGetCtx(CUstream, CUcontext*);
CUresult cuLaunchHostFunc(CUstream, CUhostFn, void* data);
CUresult cuEventCreate(CUevent*, unsigned flags);
CUresult cuEventDestroy_v2(CUevent);
CUresult cuEventRecord(CUevent, CUstream);
CUresult cuEventQuery(CUevent);
CUresult cuEventSynchronize(CUevent);
CUresult cuEventElapsedTime(float* milliseconds, CUevent start, CUevent end);
CUresult cuEventElapsedTime_v2(float* milliseconds, CUevent start, CUevent end);

CUresult cuModuleLoadData(CUmodule*, const void* image);
CUresult cuModuleLoadDataEx(CUmodule*, const void* image, unsigned options, int* names,
                            void** values);
CUresult cuModuleUnload(CUmodule);
CUresult cuModuleGetFunction(CUfunction*, CUmodule, const char* name);
CUresult cuFuncGetModule(CUmodule*, CUfunction);
CUresult cuLaunchKernel(CUfunction, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                        unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,
                        CUstream, void** parameters, void** extra);
CUresult cuLaunchKernelEx(const CUlaunchConfig*, CUfunction, void** parameters, void** extra);
CUresult cuLaunchCooperativeKernel(CUfunction, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                                   unsigned block_x, unsigned block_y, unsigned block_z,
                                   unsigned shared_bytes, CUstream, void** parameters);

CUresult cuStreamBeginCapture_v2(CUstream, int mode);
CUresult cuStreamEndCapture(CUstream, CUgraph*);
CUresult cuStreamIsCapturing(CUstream, int* status);
CUresult cuGraphCreate(CUgraph*, unsigned flags);
CUresult cuGraphDestroy(CUgraph);
CUresult cuGraphAddKernelNode_v2(CUgraphNode*, CUgraph, const CUgraphNode* after, std::size_t count,
                                 const CUDA_KERNEL_NODE_PARAMS*);
CUresult cuGraphAddMemsetNode(CUgraphNode*, CUgraph, const CUgraphNode* after, std::size_t count,
                              const CUDA_MEMSET_NODE_PARAMS*, CUcontext);
CUresult cuGraphAddHostNode(CUgraphNode*, CUgraph, const CUgraphNode* after, std::size_t count,
                            const CUDA_HOST_NODE_PARAMS*);
CUresult cuGraphAddEmptyNode(CUgraphNode*, CUgraph, const CUgraphNode* after, std::size_t count);
CUresult cuGraphAddMemAllocNode(CUgraphNode*, CUgraph, const CUgraphNode* after, std::size_t count,
                                CUDA_MEM_ALLOC_NODE_PARAMS*);
CUresult cuGraphAddMemFreeNode(CUgraphNode*, CUgraph, const CUgraphNode* after, std::size_t count,
                               CUdeviceptr);
CUresult cuDeviceGraphMemTrim(CUdevice);
CUresult cuDeviceGetGraphMemAttribute(CUdevice, int attribute, void* value);
CUresult cuGraphGetNodes(CUgraph, CUgraphNode* nodes, std::size_t* count);
CUresult cuGraphInstantiateWithFlags(CUgraphExec*, CUgraph, unsigned long long flags);
CUresult cuGraphExecDestroy(CUgraphExec);
CUresult cuGraphUpload(CUgraphExec, CUstream);
CUresult cuGraphLaunch(CUgraphExec, CUstream);
}
// NOLINTEND(readability-identifier-naming)
