// regatta-bench-rank RANK: one rank of `regatta bench`; its standard input is the board of the run.
#include <cstdio>
#include <cstdlib>

#include <sys/mman.h>
#include <unistd.h>

#include "regatta/runtime/bench/internal/shared_control.h"

int main(int argc, char** argv) {
  using regatta::bench::SharedControl;
  void* memory = argc == 2 ? ::mmap(nullptr, sizeof(SharedControl), PROT_READ | PROT_WRITE,
                                    MAP_SHARED, STDIN_FILENO, 0)
                           : MAP_FAILED;
  if (memory == MAP_FAILED) {
    std::fprintf(stderr, "regatta-bench-rank: is started by `regatta bench`; run that instead\n");
    return 2;
  }
  return regatta::bench::run_rank(*static_cast<SharedControl*>(memory), std::atoi(argv[1])) ? 0 : 1;
}
