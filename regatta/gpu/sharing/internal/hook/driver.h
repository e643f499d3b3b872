// sharing/internal/hook/driver.h: the real driver (libcuda), NVML, the codecs, and the functions of
// them that the hook replaces. The hook always asks them first; a pointer that it returns and that
// it has a wrapper for becomes the wrapper. So a program finds, by every path, what it would find
// without the hook. Nothing here locks: the first thread fills the table, and others would write
// the same.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "regatta/gpu/device/abi/codec.h"
#include "regatta/gpu/device/abi/cuda_sharing.h"
#include "regatta/gpu/device/abi/nvml.h"

namespace regatta::sharing::hook {

// NOLINTBEGIN(readability-identifier-naming): the names are the driver's
enum class DriverEntry : unsigned {
#define CUDA(symbol, ...) symbol,
#define CUDA_USED(symbol, ...) symbol,
#define CUDA_REFUSED(symbol, ...) symbol,
#define NVML(symbol, ...) symbol,
#define NVML_USED(symbol, ...) symbol,
#define DECODER(symbol, ...) symbol,
#define ENCODER(symbol, ...) symbol,
#include "regatta/gpu/sharing/internal/hook/entries.inc"
#undef CUDA
#undef CUDA_REFUSED
#undef CUDA_USED
#undef NVML
#undef NVML_USED
#undef DECODER
#undef ENCODER
  kCount
};
// NOLINTEND(readability-identifier-naming)

template <DriverEntry entry>
struct Signature;
#define CUDA_USED(symbol, ...)            \
  template <>                             \
  struct Signature<DriverEntry::symbol> { \
    using Type = CUresult(__VA_ARGS__);   \
  };
#define CUDA(symbol, handler, ...) CUDA_USED(symbol, __VA_ARGS__)
#define CUDA_REFUSED(symbol, ...) CUDA_USED(symbol, __VA_ARGS__)
#define NVML(symbol, handler, ...) CUDA_USED(symbol, __VA_ARGS__)
#define DECODER(symbol, handler, ...) CUDA_USED(symbol, __VA_ARGS__)
#define ENCODER(symbol, handler, ...) CUDA_USED(symbol, __VA_ARGS__)
#define NVML_USED(symbol, ...) CUDA_USED(symbol, __VA_ARGS__)
#include "regatta/gpu/sharing/internal/hook/entries.inc"
#undef CUDA
#undef CUDA_REFUSED
#undef CUDA_USED
#undef NVML
#undef NVML_USED
#undef DECODER
#undef ENCODER

template <DriverEntry entry>
using DriverFunction = typename Signature<entry>::Type*;

extern std::atomic<void*> driver_functions[static_cast<std::size_t>(DriverEntry::kCount)];

// Loads the library if necessary; null when it has no such function.
void* find_driver_function(DriverEntry entry);

template <DriverEntry entry>
DriverFunction<entry> driver() {
  void* function =
      driver_functions[static_cast<std::size_t>(entry)].load(std::memory_order_acquire);
  if (function == nullptr) [[unlikely]]
    function = find_driver_function(entry);
  return reinterpret_cast<DriverFunction<entry>>(function);
}

// The function for a program that found `function`: our wrapper, or the same.
void* wrapped(void* function);

// Whether the driver has the function of this wrapper.
bool is_answered(void* wrapper);

enum class DriverLibrary : std::uint8_t { kCuda, kNvml, kDecoder, kEncoder };

// Identifies a library by one of its functions, unless it is known; false when `function` is in
// another one.
bool learn(DriverLibrary library, void* function);

// Whether an address lies in this library.
bool is_own(const void* address);

// The C library's dlsym, found without calling it.
using FindSymbol = void*(void* handle, const char* name);
FindSymbol* real_dlsym();

}  // namespace regatta::sharing::hook
