// tests/hook/program_rate.h: does one thing again and again and says how much came of it.
#pragma once

#include <chrono>
#include <cstdio>

namespace regatta::hook_test {

inline bool wait_to_begin() {
  std::puts("ready");
  std::fflush(stdout);
  return std::getchar() != EOF;
}

// `run()` says whether it succeeded, and makes `amount` each time; after each second a line with
// what was made so far and how many seconds that took. The exit status of a program.
template <typename Run>
int run_for(int seconds, std::size_t amount, const Run& run) {
  if (!wait_to_begin()) return 2;
  const auto begin = std::chrono::steady_clock::now();
  std::size_t done = 0;
  for (int second = 1; second <= seconds;) {
    if (!run()) return 3;
    done += amount;
    const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - begin;
    if (passed < std::chrono::seconds(second)) continue;
    std::printf("%zu %.6f\n", done, passed.count());
    std::fflush(stdout);
    ++second;
  }
  return 0;
}

}  // namespace regatta::hook_test
