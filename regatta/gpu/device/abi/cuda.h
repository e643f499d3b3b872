// device/abi/cuda.h: what regatta uses of the CUDA driver's binary interface, declared by
// ourselves: no SDK is needed to build. Names, values and layouts are those of NVIDIA's cuda.h
// (driver API 11 and later); `_v2` is the symbol that the header of that version means.
#pragma once

#include <cstddef>
#include <cstdint>

// NOLINTBEGIN(readability-identifier-naming): the names are the driver's
extern "C" {
using CUresult = int;
using CUdevice = int;
using CUdeviceptr = std::uint64_t;
using CUcontext = struct CUctx_st*;
using CUstream = struct CUstream_st*;
using CUevent = struct CUevent_st*;

inline constexpr CUresult CUDA_SUCCESS = 0;
inline constexpr unsigned CU_MEMORYTYPE_DEVICE = 2;
inline constexpr int CU_POINTER_ATTRIBUTE_MEMORY_TYPE = 2;
inline constexpr int CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL = 9;
inline constexpr unsigned CU_STREAM_DEFAULT = 0;
inline constexpr unsigned CU_EVENT_DISABLE_TIMING = 2;
inline constexpr unsigned CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS = 1;

struct CUipcMemHandle {
  char reserved[64];
};
static_assert(sizeof(CUipcMemHandle) == 64);
}
// NOLINTEND(readability-identifier-naming)
