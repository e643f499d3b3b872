// Calls the driver that it is linked to: opened with RTLD_DEEPBIND it finds that library's
// functions before those of what is preloaded.
#include "tests/attacks/take_memory.h"

extern "C" int take_all(int most) {
  CUcontext context = nullptr;
  if (::cuInit(0) != CUDA_SUCCESS) return 0;
  MUST(::cuDevicePrimaryCtxRetain(&context, 0));
  MUST(::cuCtxSetCurrent(context));
  return regatta::attacks::take_mebibytes(::cuMemAlloc_v2, most);
}
