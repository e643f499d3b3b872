// An honest program: allocates as many MiB as the first word says in pieces of 32 MiB, uses all of
// it, says so, and keeps it; as often as the second word says it does so again.
#include <vector>

#include <unistd.h>

#include "tests/attacks/attack.h"

int main(int argc, char** argv) {
  constexpr std::uint64_t kPiece = 32ULL << 20;
  const std::uint64_t mib = regatta::attacks::number(argc, argv, 1, 320);
  regatta::attacks::open_context();
  const regatta::attacks::SpinKernel kernel;
  std::vector<CUdeviceptr> pieces(mib * (1 << 20) / kPiece);
  for (CUdeviceptr& piece : pieces)
    MUST(CU(cuMemAlloc_v2)(&piece, kPiece));
  for (std::uint64_t i = 0; i < regatta::attacks::number(argc, argv, 2, 1); ++i) {
    for (const CUdeviceptr piece : pieces)
      MUST(CU(cuMemsetD8_v2)(piece, 1, 4096));
    MUST(kernel.launch(1000));
    MUST(kernel.wait());
    std::puts("filled");
    std::fflush(stdout);
  }
  ::pause();
}
