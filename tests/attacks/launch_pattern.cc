// Launches by a pattern of launch_patterns.h until it is ended. Words: the pattern's name, and the
// seed of what it draws. Without a word: the names, and those that pause with a 1 behind.
#include <cstdio>

#include <sys/prctl.h>

#include "tests/attacks/launch_patterns.h"

int main(int argc, char** argv) {
  using namespace regatta::attacks;
  if (argc < 2) {
    for (const auto& [name, pattern] : launch_patterns())
      std::printf("%s %d\n", name.c_str(), pattern.pauses ? 1 : 0);
    return 0;
  }
  const auto found = launch_patterns().find(argv[1]);
  if (found == launch_patterns().end()) return 64;
  ::prctl(PR_SET_TIMERSLACK, 1);
  const Pattern& pattern = found->second;
  const std::uint64_t seed = number(argc, argv, 2, 1);
  CUcontext context = open_context();
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < pattern.threads; ++i) {
    threads.emplace_back([&, i] {
      MUST(CU(cuCtxSetCurrent)(context));
      Launcher device(seed + i, pattern.streams);
      for (;;)
        pattern.step(device);
    });
  }
  for (std::thread& thread : threads)
    thread.join();
}
