// tests/attacks/attack.h: what the programs that attack share: the driver's functions, a context,
// and kernels that take as long as they are told.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include <dlfcn.h>

#include "tests/standin/api.h"

namespace regatta::attacks {

inline void* driver_symbol(const char* name) {
  static void* const handle = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  void* const found = handle == nullptr ? nullptr : ::dlsym(handle, name);
  if (found == nullptr) {
    std::fprintf(stderr, "no driver, or it lacks %s\n", name);
    std::_Exit(90);
  }
  return found;
}
#define CU(name) (reinterpret_cast<decltype(&::name)>(::regatta::attacks::driver_symbol(#name)))

// Ends the program with status 91 when the driver refuses what no tenant is refused.
inline void must(CUresult result, const char* what) {
  if (result == CUDA_SUCCESS) return;
  std::fprintf(stderr, "%s: error %d\n", what, static_cast<int>(result));
  std::_Exit(91);
}
#define MUST(call) ::regatta::attacks::must((call), #call)

// The primary context of GPU 0, current in this thread.
inline CUcontext open_context() {
  CUcontext context = nullptr;
  MUST(CU(cuInit)(0));
  MUST(CU(cuDevicePrimaryCtxRetain)(&context, 0));
  MUST(CU(cuCtxSetCurrent)(context));
  return context;
}

// A kernel that takes as many ns as its parameter says and fills the device.
class SpinKernel {
 public:
  explicit SpinKernel(CUstream stream = nullptr) : stream_(stream) {
    CUmodule module = nullptr;
    MUST(
        CU(cuModuleLoadData)(&module, ".visible .entry spin_ns(.param .u64 nanoseconds) { ret; }"));
    MUST(CU(cuModuleGetFunction)(&function_, module, "spin_ns"));
  }

  CUresult launch(std::uint64_t ns, unsigned blocks = 1024) const {
    void* parameters[] = {&ns};
    return launch_(function_, blocks, 1, 1, 128, 1, 1, 0, stream_, parameters, nullptr);
  }
  CUresult wait() const { return wait_(stream_); }

 private:
  CUfunction function_ = nullptr;
  CUstream stream_ = nullptr;
  decltype(&::cuLaunchKernel) launch_ = CU(cuLaunchKernel);
  decltype(&::cuStreamSynchronize) wait_ = CU(cuStreamSynchronize);
};

// The number that the word `at` of the command line is; `otherwise` where there is none.
inline std::uint64_t number(int argc, char** argv, int at, std::uint64_t otherwise) {
  return argc > at ? std::strtoull(argv[at], nullptr, 10) : otherwise;
}

}  // namespace regatta::attacks
