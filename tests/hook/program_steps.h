// tests/hook/program_steps.h: what a program that is looked at says: that something went wrong, and
// that it came to a step, after which it waits for a line.
#pragma once

#include <atomic>
#include <cstdio>

#include <unistd.h>

namespace regatta::hook_test {

inline std::atomic<int> failures = 0;

inline void expect(bool is_right, const char* what) {
  if (is_right) return;
  std::printf("wrong: %s\n", what);
  ++failures;
}
#define EXPECT(condition) regatta::hook_test::expect(condition, #condition)

inline void wait_for_line() {
  std::fflush(stdout);
  char letter = 0;
  while (::read(STDIN_FILENO, &letter, 1) == 1 && letter != '\n') {
  }
}

inline void step(const char* name) {
  std::printf("step %s\n", name);
  wait_for_line();
}

}  // namespace regatta::hook_test
