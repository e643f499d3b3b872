// tests/standin/export_table.h: the tables that the CUDA runtime library asks the driver for, and
// what it finds in them. Not documented by NVIDIA; so far as ZLUDA says it.
#pragma once

#include "regatta/gpu/device/abi/cuda_sharing.h"

namespace regatta::standin {

// Loads modules and gives primary contexts, which are retained here; what NVIDIA's does of that is
// not known. Its size comes first, as in all but one of them.
inline constexpr CUuuid kRuntimeTable{{'\x6b', '\xd5', '\xfb', '\x6c', '\x5b', '\xf4', '\xe7',
                                       '\x4a', '\x89', '\x87', '\xd9', '\x39', '\x12', '\xfd',
                                       '\x9d', '\xf9'}};
inline constexpr std::size_t kRuntimeLoad = 1;           // (CUmodule*, wrapper)
inline constexpr std::size_t kRuntimeGetPrimary = 2;     // (CUcontext*, CUdevice)
inline constexpr std::size_t kRuntimeLoadMore = 6;       // (CUmodule*, wrapper, ...)
inline constexpr std::size_t kRuntimeLoadUnwrapped = 8;  // (fat binary, CUmodule*, ...)

// For profilers.
inline constexpr CUuuid kToolsTable{{'\xa0', '\x94', '\x79', '\x8c', '\x2e', '\x74', '\x2e', '\x74',
                                     '\x93', '\xf2', '\x08', '\x00', '\x20', '\x0c', '\x0a',
                                     '\x66'}};
inline constexpr CUuuid kToolsOfThreadsTable{{'\x42', '\xd8', '\x5a', '\x81', '\x23', '\xf6',
                                              '\xcb', '\x47', '\x82', '\x98', '\xf6', '\xe7',
                                              '\x8a', '\x3a', '\xec', '\xdc'}};

// Values that are kept with a context, by a key. It has no size.
inline constexpr CUuuid kStorageTable{{'\xc6', '\x93', '\x33', '\x6e', '\x11', '\x21', '\xdf',
                                       '\x11', '\xa8', '\xc3', '\x68', '\xf3', '\x55', '\xd8',
                                       '\x95', '\x93'}};
inline constexpr std::size_t kStoragePut =
    0;  // (CUcontext, key, value, function to call at its end)
inline constexpr std::size_t kStorageRemove = 1;  // (CUcontext, key)
inline constexpr std::size_t kStorageGet = 2;     // (value*, CUcontext, key)

}  // namespace regatta::standin
