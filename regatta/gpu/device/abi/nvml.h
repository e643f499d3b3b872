// device/abi/nvml.h: what regatta uses of NVML's binary interface, declared by ourselves. Names,
// values and layouts are those of NVIDIA's nvml.h (12 and later).
#pragma once

#include <cstdint>

// NOLINTBEGIN(readability-identifier-naming): the names are NVML's
extern "C" {
using nvmlReturn_t = int;
using nvmlDevice_t = struct nvmlDevice_st*;

inline constexpr nvmlReturn_t NVML_SUCCESS = 0;
inline constexpr nvmlReturn_t NVML_ERROR_UNINITIALIZED = 1;
inline constexpr nvmlReturn_t NVML_ERROR_INVALID_ARGUMENT = 2;
inline constexpr nvmlReturn_t NVML_ERROR_NOT_FOUND = 6;
inline constexpr nvmlReturn_t NVML_ERROR_INSUFFICIENT_SIZE = 7;
inline constexpr nvmlReturn_t NVML_ERROR_LIBRARY_NOT_FOUND = 12;
inline constexpr unsigned long long NVML_VALUE_NOT_AVAILABLE = ~0ULL;

inline constexpr nvmlReturn_t NVML_ERROR_GPU_IS_LOST = 15;
inline constexpr nvmlReturn_t NVML_ERROR_RESET_REQUIRED = 16;

struct nvmlUtilization_t {  // percent of the latest sampling period
  unsigned gpu;
  unsigned memory;
};
struct nvmlMemory_t {
  unsigned long long total;
  unsigned long long free;
  unsigned long long used;
};
struct nvmlMemory_v2_t {
  unsigned version;
  unsigned long long total;
  unsigned long long reserved;
  unsigned long long free;
  unsigned long long used;
};
static_assert(sizeof(nvmlMemory_v2_t) == 40);
struct nvmlProcessInfo_t {  // version 2, which version 3 of the call uses too
  unsigned pid;
  unsigned long long usedGpuMemory;  // all bits set: it is not available
  unsigned gpuInstanceId;
  unsigned computeInstanceId;
};
static_assert(sizeof(nvmlProcessInfo_t) == 24);
}
// NOLINTEND(readability-identifier-naming)
