// sharing/internal/hook/exports.h: what the library shows to programs: the driver's functions of
// entries.inc, and dlsym.
#pragma once

#include "regatta/gpu/sharing/internal/hook/driver.h"

extern "C" {
#define CUDA_USED(symbol, ...)
#define NVML_USED(symbol, ...)
#define CUDA(symbol, handler, ...) CUresult symbol(__VA_ARGS__);
#define CUDA_REFUSED(symbol, ...) CUDA(symbol, none, __VA_ARGS__)
#define NVML(symbol, handler, ...) CUDA(symbol, handler, __VA_ARGS__)
#define DECODER(symbol, handler, ...) CUDA(symbol, handler, __VA_ARGS__)
#define ENCODER(symbol, handler, ...) CUDA(symbol, handler, __VA_ARGS__)
#include "regatta/gpu/sharing/internal/hook/entries.inc"
#undef CUDA
#undef CUDA_REFUSED
#undef NVML
#undef DECODER
#undef ENCODER
// How many launches the gates let pass, not counting those into captures.
std::uint64_t regatta_gpu_launches();
}

namespace regatta::sharing::hook {

// A call that no tenant may make: one line on standard error, and CUDA_ERROR_NOT_SUPPORTED.
CUresult refuse(const char* symbol, const char* why);

// The handlers: each has its file by what it is about.
#define CUDA_REFUSED(symbol, ...)
#define CUDA(symbol, handler, ...) \
  CUresult handler(CUresult (*real)(__VA_ARGS__) __VA_OPT__(, ) __VA_ARGS__);
#define NVML(symbol, handler, ...) CUDA(symbol, handler, __VA_ARGS__)
#define DECODER(symbol, handler, ...) CUDA(symbol, handler, __VA_ARGS__)
#define ENCODER(symbol, handler, ...) CUDA(symbol, handler, __VA_ARGS__)
#include "regatta/gpu/sharing/internal/hook/entries.inc"
#undef CUDA
#undef CUDA_REFUSED
#undef CUDA_USED
#undef NVML
#undef NVML_USED
#undef DECODER
#undef ENCODER

}  // namespace regatta::sharing::hook
