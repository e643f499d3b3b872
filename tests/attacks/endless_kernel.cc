// Launches a kernel that never ends, and waits for it. It ends with its process.
#include "tests/attacks/attack.h"

int main() {
  using namespace regatta::attacks;
  open_context();
  CUfunction const function = load_kernel(R"(.visible .entry spin_forever()
{
  .reg .u64 %rd<2>;
AGAIN:
  mov.u64 %rd1, %clock64;
  bra AGAIN;
}
)",
                                          "spin_forever");
  MUST(CU(cuLaunchKernel)(function, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr));
  MUST(CU(cuCtxSynchronize)());
}
