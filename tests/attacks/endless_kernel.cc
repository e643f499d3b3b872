// Launches a kernel that never ends, and waits for it.
#include "tests/attacks/attack.h"

int main() {
  using namespace regatta::attacks;
  open_context();
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  MUST(CU(cuModuleLoadData)(&module, ".visible .entry spin_forever() { ret; }"));
  MUST(CU(cuModuleGetFunction)(&function, module, "spin_forever"));
  MUST(CU(cuLaunchKernel)(function, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr));
  MUST(CU(cuCtxSynchronize)());
}
