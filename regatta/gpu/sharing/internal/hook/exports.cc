// Out of each row of entries.inc a function that a program can be linked to.
#include "regatta/gpu/sharing/internal/hook/exports.h"

#include <exception>

#include "regatta/gpu/sharing/internal/hook/report.h"
#include "regatta/gpu/sharing/internal/hook/swap.h"

namespace {

namespace hook = regatta::sharing::hook;

// The error of a program that calls a function which its driver lacks, or has no driver.
constexpr CUresult kNoCuda = CUDA_ERROR_SHARED_OBJECT_INIT_FAILED;
constexpr nvmlReturn_t kNoNvml = NVML_ERROR_LIBRARY_NOT_FOUND;
constexpr NVENCSTATUS kNoEncoder = NV_ENC_ERR_NO_ENCODE_DEVICE;

}  // namespace

// PARAMETERS(int, void*) is int a1, void* a2; ARGUMENTS(int, void*) is , a1, a2. Both are empty
// without types. NOLINTBEGIN(bugprone-macro-parentheses): types cannot be in parentheses
#define PICK(_1, _2, _3, _4, _5, _6, _7, _8, _9, _10, _11, picked, ...) picked
#define PARAMETERS(...) \
  __VA_OPT__(PICK(__VA_ARGS__, P11, P10, P9, P8, P7, P6, P5, P4, P3, P2, P1)(__VA_ARGS__))
#define ARGUMENTS(...) __VA_OPT__(, PICK(__VA_ARGS__, A11, A10, A9, A8, A7, A6, A5, A4, A3, A2, A1))
#define P1(t) t a1
#define P2(t, u) P1(t), u a2
#define P3(t, u, v) P2(t, u), v a3
#define P4(t, u, v, w) P3(t, u, v), w a4
#define P5(t, u, v, w, x) P4(t, u, v, w), x a5
#define P6(t, u, v, w, x, y) P5(t, u, v, w, x), y a6
#define P7(t, u, v, w, x, y, z) P6(t, u, v, w, x, y), z a7
#define P8(t, u, v, w, x, y, z, k) P7(t, u, v, w, x, y, z), k a8
#define P9(t, u, v, w, x, y, z, k, l) P8(t, u, v, w, x, y, z, k), l a9
#define P10(t, u, v, w, x, y, z, k, l, m) P9(t, u, v, w, x, y, z, k, l), m a10
#define P11(t, u, v, w, x, y, z, k, l, m, n) P10(t, u, v, w, x, y, z, k, l, m), n a11
#define A1 a1
#define A2 A1, a2
#define A3 A2, a3
#define A4 A3, a4
#define A5 A4, a5
#define A6 A5, a6
#define A7 A6, a7
#define A8 A7, a8
#define A9 A8, a9
#define A10 A9, a10
#define A11 A10, a11
// NOLINTEND(bugprone-macro-parentheses)

// Nothing of ours leaves by an exception. std::exception and not all: a thread that is cancelled
// unwinds through here.
#define EXPORT(missing, symbol, handler, ...)                     \
  CUresult symbol(PARAMETERS(__VA_ARGS__)) {                      \
    auto* const real = hook::driver<hook::DriverEntry::symbol>(); \
    if (real == nullptr) [[unlikely]]                             \
      return missing;                                             \
    const hook::DriverCallGuard in_call;                          \
    try {                                                         \
      return hook::handler(real ARGUMENTS(__VA_ARGS__));          \
    } catch (const std::exception&) {                             \
      return hook::report_fault(#symbol);                         \
    }                                                             \
  }
#define CUDA(symbol, handler, ...) EXPORT(kNoCuda, symbol, handler, __VA_ARGS__)
#define NVML(symbol, handler, ...) EXPORT(kNoNvml, symbol, handler, __VA_ARGS__)
#define DECODER(symbol, handler, ...) EXPORT(kNoCuda, symbol, handler, __VA_ARGS__)
#define ENCODER(symbol, handler, ...) EXPORT(kNoEncoder, symbol, handler, __VA_ARGS__)
#define CUDA_REFUSED(symbol, ...)                                                      \
  CUresult symbol(__VA_ARGS__) {                                                       \
    if (hook::driver<hook::DriverEntry::symbol>() == nullptr) return kNoCuda;          \
    return hook::refuse(#symbol, "it is of before CUDA 4, with addresses of 32 bits"); \
  }
#define CUDA_USED(symbol, ...)
#define NVML_USED(symbol, ...)
extern "C" {
#include "regatta/gpu/sharing/internal/hook/entries.inc"
}
