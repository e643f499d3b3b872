// gpu_random_programs_bench [seed=N] [programs=N]: programs drawn at random against the books and
// the device, one after the other. Ends with status 1 and the seed of the first that failed; the
// same words run it again.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>

#include "tests/attacks/random_programs.h"

int main(int argc, char** argv) {
  std::uint64_t seed = std::random_device()();
  std::uint64_t programs = 1000;
  for (int i = 1; i < argc; ++i) {
    const char* const value = std::strchr(argv[i], '=');
    if (std::strncmp(argv[i], "seed=", 5) == 0) {
      seed = std::strtoull(value + 1, nullptr, 10);
    } else if (std::strncmp(argv[i], "programs=", 9) == 0) {
      programs = std::strtoull(value + 1, nullptr, 10);
    } else {
      std::printf("%s: no such word; seed=N and programs=N are\n", argv[i]);
      return 2;
    }
  }
  const auto begin = std::chrono::steady_clock::now();
  std::printf("seed=%lu programs=%lu\n", static_cast<unsigned long>(seed),
              static_cast<unsigned long>(programs));
  for (std::uint64_t i = 0; i < programs; ++i) {
    const std::string failure = regatta::attacks::run_random_program(seed + i);
    if (!failure.empty()) {
      std::printf("seed=%lu: %s\n", static_cast<unsigned long>(seed + i), failure.c_str());
      return 1;
    }
    if (i % 50 != 49 && i + 1 != programs) continue;
    const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - begin;
    std::printf("%lu programs in %.0f s, none failed\n", static_cast<unsigned long>(i + 1),
                passed.count());
    std::fflush(stdout);
  }
  return 0;
}
