// Keeps several processes going that each launch kernels of as many ns as the first word says,
// without a pause; the second word is how many. Runs until it is ended.
#include <csignal>

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/attacks/attack.h"

int main(int argc, char** argv) {
  using namespace regatta::attacks;
  const std::uint64_t kernel_ns = number(argc, argv, 1, 200'000);
  const std::uint64_t processes = number(argc, argv, 2, 2);
  for (std::uint64_t i = 0; i < processes; ++i) {
    if (::fork() != 0) continue;
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    open_context();
    const SpinKernel kernel;
    for (;;)
      MUST(kernel.launch(kernel_ns));
  }
  while (::wait(nullptr) > 0)
    continue;
  return 0;
}
