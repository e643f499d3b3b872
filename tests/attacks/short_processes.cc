// Starts a process again and again that launches one kernel of as many ns as the first word says,
// waits for it or not (the second word: 1 or 0), and ends: each begins without a history. Runs
// until it is ended; the third word is how many processes it keeps going at a time.
#include <csignal>

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/attacks/attack.h"

namespace {

// A child that has not used the driver before the fork may use it.
[[noreturn]] void launch_and_end(std::uint64_t kernel_ns, bool waits) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  regatta::attacks::open_context();
  const regatta::attacks::SpinKernel kernel;
  MUST(kernel.launch(kernel_ns));
  if (waits) MUST(kernel.wait());
  std::_Exit(0);
}

}  // namespace

int main(int argc, char** argv) {
  const std::uint64_t kernel_ns = regatta::attacks::number(argc, argv, 1, 1'000'000);
  const bool waits = regatta::attacks::number(argc, argv, 2, 1) != 0;
  const std::uint64_t at_a_time = regatta::attacks::number(argc, argv, 3, 1);
  std::uint64_t running = 0;
  for (;;) {
    for (; running < at_a_time; ++running)
      if (::fork() == 0) launch_and_end(kernel_ns, waits);
    if (::wait(nullptr) > 0) --running;
  }
}
