// tests/standin/api.h: the functions of the driver that the stand-in exports.
#pragma once

#include "regatta/gpu/device/abi/checkpoint.h"
#include "regatta/gpu/device/abi/cuda_sharing.h"
#include "tests/standin/api_code.h"
#include "tests/standin/api_first_version.h"
#include "tests/standin/api_graph.h"
#include "tests/standin/api_memory.h"

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
CUresult cuDeviceComputeCapability(int* major, int* minor, CUdevice);
CUresult cuDeviceGetPCIBusId(char* id, int size, CUdevice);
CUresult cuDeviceGetByPCIBusId(CUdevice*, const char* id);
CUresult cuDeviceCanAccessPeer(int* can, CUdevice, CUdevice peer);
CUresult cuDeviceGetP2PAttribute(int* value, int attribute, CUdevice, CUdevice peer);

CUresult cuCtxCreate_v2(CUcontext*, unsigned flags, CUdevice);
CUresult cuCtxCreate_v3(CUcontext*, void* affinities, int count, unsigned flags, CUdevice);
CUresult cuCtxCreate_v4(CUcontext*, void* parameters, unsigned flags, CUdevice);
CUresult cuCtxDestroy_v2(CUcontext);
CUresult cuCtxPushCurrent_v2(CUcontext);
CUresult cuCtxPopCurrent_v2(CUcontext*);
CUresult cuCtxSetCurrent(CUcontext);
CUresult cuCtxGetCurrent(CUcontext*);
CUresult cuCtxGetDevice(CUdevice*);
CUresult cuCtxGetFlags(unsigned* flags);
CUresult cuCtxSynchronize();
CUresult cuCtxGetStreamPriorityRange(int* least, int* greatest);
CUresult cuCtxGetLimit(std::size_t* value, int limit);
CUresult cuCtxSetLimit(int limit, std::size_t value);
CUresult cuCtxGetApiVersion(CUcontext, unsigned* version);
CUresult cuCtxGetId(CUcontext, unsigned long long* id);
CUresult cuCtxGetCacheConfig(int* config);
CUresult cuCtxSetCacheConfig(int config);
CUresult cuCtxEnablePeerAccess(CUcontext peer, unsigned flags);
CUresult cuCtxDisablePeerAccess(CUcontext peer);
CUresult cuDevicePrimaryCtxSetFlags_v2(CUdevice, unsigned flags);
CUresult cuDevicePrimaryCtxRetain(CUcontext*, CUdevice);
CUresult cuDevicePrimaryCtxRelease(CUdevice);
CUresult cuDevicePrimaryCtxRelease_v2(CUdevice);
CUresult cuDevicePrimaryCtxReset(CUdevice);
CUresult cuDevicePrimaryCtxReset_v2(CUdevice);
CUresult cuDevicePrimaryCtxGetState(CUdevice, unsigned* flags, int* active);

CUresult cuStreamCreate(CUstream*, unsigned flags);
CUresult cuStreamCreateWithPriority(CUstream*, unsigned flags, int priority);
CUresult cuStreamDestroy_v2(CUstream);
CUresult cuStreamSynchronize(CUstream);
CUresult cuStreamQuery(CUstream);
CUresult cuStreamWaitEvent(CUstream, CUevent, unsigned flags);
CUresult cuStreamGetFlags(CUstream, unsigned* flags);
CUresult cuStreamGetPriority(CUstream, int* priority);
CUresult cuStreamGetCtx(CUstream, CUcontext*);
CUresult cuStreamGetId(CUstream, unsigned long long* id);
CUresult cuStreamGetDevice(CUstream, CUdevice*);
CUresult cuStreamAddCallback(CUstream, CUstreamCallback, void* data, unsigned flags);
CUresult cuLaunchHostFunc(CUstream, CUhostFn, void* data);
CUresult cuEventCreate(CUevent*, unsigned flags);
CUresult cuEventDestroy_v2(CUevent);
CUresult cuEventRecord(CUevent, CUstream);
CUresult cuEventRecordWithFlags(CUevent, CUstream, unsigned flags);
CUresult cuEventQuery(CUevent);
CUresult cuEventSynchronize(CUevent);
CUresult cuEventElapsedTime(float* milliseconds, CUevent start, CUevent end);
CUresult cuEventElapsedTime_v2(float* milliseconds, CUevent start, CUevent end);

CUresult cuCheckpointProcessGetState(int pid, CUprocessState*);
CUresult cuCheckpointProcessGetRestoreThreadId(int pid, int* thread);
CUresult cuCheckpointProcessLock(int pid, CUcheckpointLockArgs*);
CUresult cuCheckpointProcessCheckpoint(int pid, CUcheckpointCheckpointArgs*);
CUresult cuCheckpointProcessRestore(int pid, CUcheckpointRestoreArgs*);
CUresult cuCheckpointProcessUnlock(int pid, CUcheckpointUnlockArgs*);
}
// NOLINTEND(readability-identifier-naming)
