// tests/standin/api_code.h: the functions of the driver about modules, kernels and launches.
#pragma once

#include "regatta/gpu/device/abi/cuda_sharing.h"

// NOLINTBEGIN(readability-identifier-naming): the names are the driver's
inline constexpr CUresult CUDA_ERROR_INVALID_PTX = 218;

extern "C" {
CUresult cuModuleLoad(CUmodule*, const char* path);
CUresult cuModuleLoadData(CUmodule*, const void* image);
CUresult cuModuleLoadDataEx(CUmodule*, const void* image, unsigned options, int* names,
                            void** values);
CUresult cuModuleLoadFatBinary(CUmodule*, const void* image);
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
CUresult cuModuleGetGlobal_v2(CUdeviceptr*, std::size_t* bytes, CUmodule, const char* name);
CUresult cuModuleGetFunctionCount(unsigned* count, CUmodule);
CUresult cuModuleEnumerateFunctions(CUfunction*, unsigned count, CUmodule);
CUresult cuModuleGetLoadingMode(int* mode);

CUresult cuFuncGetAttribute(int* value, int attribute, CUfunction);
CUresult cuFuncSetAttribute(CUfunction, int attribute, int value);
CUresult cuFuncSetCacheConfig(CUfunction, int config);
CUresult cuFuncGetName(const char** name, CUfunction);
CUresult cuFuncGetParamInfo(CUfunction, std::size_t index, std::size_t* offset, std::size_t* bytes);
CUresult cuFuncIsLoaded(int* state, CUfunction);
CUresult cuFuncLoad(CUfunction);
CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, CUfunction, int block_threads,
                                                     std::size_t shared_bytes);
CUresult cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, CUfunction,
                                                              int block_threads,
                                                              std::size_t shared_bytes,
                                                              unsigned flags);

CUresult cuLibraryLoadData(CUlibrary*, const void* image, int* jit_options, void** jit_values,
                           unsigned jit_count, int* options, void** values, unsigned count);
CUresult cuLibraryLoadFromFile(CUlibrary*, const char* path, int* jit_options, void** jit_values,
                               unsigned jit_count, int* options, void** values, unsigned count);
CUresult cuLibraryUnload(CUlibrary);
CUresult cuLibraryGetKernel(CUkernel*, CUlibrary, const char* name);
CUresult cuLibraryGetKernelCount(unsigned* count, CUlibrary);
CUresult cuLibraryEnumerateKernels(CUkernel*, unsigned count, CUlibrary);
CUresult cuLibraryGetModule(CUmodule*, CUlibrary);
CUresult cuLibraryGetGlobal(CUdeviceptr*, std::size_t* bytes, CUlibrary, const char* name);
CUresult cuKernelGetFunction(CUfunction*, CUkernel);
CUresult cuKernelGetLibrary(CUlibrary*, CUkernel);
CUresult cuKernelGetName(const char** name, CUkernel);
CUresult cuKernelGetAttribute(int* value, int attribute, CUkernel, CUdevice);
CUresult cuKernelSetAttribute(int attribute, int value, CUkernel, CUdevice);
CUresult cuKernelSetCacheConfig(CUkernel, int config, CUdevice);
CUresult cuKernelGetParamInfo(CUkernel, std::size_t index, std::size_t* offset, std::size_t* bytes);
}
// NOLINTEND(readability-identifier-naming)
