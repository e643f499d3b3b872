// Launches kernels of as many ns as the first word says for as many ms as the second word says,
// after it has used up all its descriptors (the third word: leak), or with a limit of as many as
// the third word says from its start. Prints the result of what was refused first.
#include <chrono>
#include <string_view>

#include <fcntl.h>
#include <sys/resource.h>

#include "tests/attacks/attack.h"

namespace {

int flood(const regatta::attacks::SpinKernel& kernel, std::uint64_t kernel_ns,
          std::chrono::milliseconds how_long) {
  using Clock = std::chrono::steady_clock;
  for (const auto end = Clock::now() + how_long; Clock::now() < end;) {
    if (const CUresult result = kernel.launch(kernel_ns); result != CUDA_SUCCESS) return result;
    if (const CUresult result = kernel.wait(); result != CUDA_SUCCESS) return result;
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const bool leaks = argc <= 3 || argv[3] == std::string_view("leak");
  const rlim_t most = leaks ? 256 : regatta::attacks::number(argc, argv, 3, 9);
  const rlimit limit{most, most};
  if (!leaks) ::setrlimit(RLIMIT_NOFILE, &limit);
  const CUresult begun = CU(cuInit)(0);
  if (begun != CUDA_SUCCESS) {
    std::printf("%d\n", static_cast<int>(begun));
    return 0;
  }
  regatta::attacks::open_context();
  const regatta::attacks::SpinKernel kernel;  // first: the driver needs descriptors to compile it
  if (leaks) {
    ::setrlimit(RLIMIT_NOFILE, &limit);
    while (::open("/dev/null", O_RDONLY | O_CLOEXEC) >= 0)
      continue;
  }
  std::printf("%d\n", flood(kernel, regatta::attacks::number(argc, argv, 1, 500'000),
                            std::chrono::milliseconds(regatta::attacks::number(argc, argv, 2, 0))));
}
