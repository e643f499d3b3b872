// tests/attacks/attack.h: what the programs that attack share: the driver's functions, a context,
// kernels that take as long as they are told, and what differs on a real device.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

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

inline bool is_stand_in() {
  char name[64] = {};
  return CU(cuDeviceGetName)(name, sizeof name, 0) == CUDA_SUCCESS &&
         name == std::string_view("Regatta stand-in");
}
// Ends the program with status 77 where the device is a real one, which `what` cannot be tried on.
inline void require_stand_in(const char* what) {
  if (is_stand_in()) return;
  std::fprintf(stderr, "%s: only on the stand-in device\n", what);
  std::_Exit(77);
}

// Every PTX text begins so: of GPUs of compute capability 7.5 and later.
inline constexpr char kPtxBegin[] = ".version 6.4\n.target sm_75\n.address_size 64\n";

// The kernel `name` of a module that has the PTX text.
inline CUfunction load_kernel(const std::string& text, const char* name) {
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  MUST(CU(cuModuleLoadData)(&module, (kPtxBegin + text).c_str()));
  MUST(CU(cuModuleGetFunction)(&function, module, name));
  return function;
}

// A kernel that takes as many ns as its parameter says and fills the device: each of its threads
// looks at the device's clock until they have passed.
class SpinKernel {
 public:
  explicit SpinKernel(CUstream stream = nullptr)
      : function_(load_kernel(kText, "spin_ns")), stream_(stream) {}

  CUresult launch(std::uint64_t ns, unsigned blocks = 1024) const {
    void* parameters[] = {&ns};
    return launch_(function_, blocks, 1, 1, 128, 1, 1, 0, stream_, parameters, nullptr);
  }
  CUresult wait() const { return wait_(stream_); }

 private:
  // The stand-in device goes by the name: the first parameter says how many ns.
  static constexpr char kText[] = R"(.visible .entry spin_ns(.param .u64 spin_ns_param_0)
{
  .reg .u64 %rd<4>;
  .reg .pred %p<2>;
  ld.param.u64 %rd1, [spin_ns_param_0];
  mov.u64 %rd2, %globaltimer;
AGAIN:
  mov.u64 %rd3, %globaltimer;
  sub.u64 %rd3, %rd3, %rd2;
  setp.lt.u64 %p1, %rd3, %rd1;
  @%p1 bra AGAIN;
  ret;
}
)";

  CUfunction function_;
  CUstream stream_;
  decltype(&::cuLaunchKernel) launch_ = CU(cuLaunchKernel);
  decltype(&::cuStreamSynchronize) wait_ = CU(cuStreamSynchronize);
};

// The number that the word `at` of the command line is; `otherwise` where there is none.
inline std::uint64_t number(int argc, char** argv, int at, std::uint64_t otherwise) {
  return argc > at ? std::strtoull(argv[at], nullptr, 10) : otherwise;
}

}  // namespace regatta::attacks
