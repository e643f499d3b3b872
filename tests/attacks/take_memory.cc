// Takes memory until it is refused, of the driver that the first word names, by its name or its
// path. Says how many MiB it got. The second word is how many it wants (kMostMib); then it keeps
// them until it is ended.
#include "tests/attacks/take_memory.h"

#include <dlfcn.h>

int main(int argc, char** argv) {
  void* const driver = ::dlopen(argc > 1 ? argv[1] : "libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (driver == nullptr) {
    std::fprintf(stderr, "%s\n", ::dlerror());
    return 90;
  }
#define FIND(name) (reinterpret_cast<decltype(&::name)>(::dlsym(driver, #name)))
  CUcontext context = nullptr;
  if (FIND(cuInit)(0) != CUDA_SUCCESS) {
    std::printf("0\n");
    return 0;
  }
  MUST(FIND(cuDevicePrimaryCtxRetain)(&context, 0));
  MUST(FIND(cuCtxSetCurrent)(context));
  const auto most =
      static_cast<int>(regatta::attacks::number(argc, argv, 2, regatta::attacks::kMostMib));
  regatta::attacks::say_mebibytes(regatta::attacks::take_mebibytes(FIND(cuMemAlloc_v2), most),
                                  argc);
}
