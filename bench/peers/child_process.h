// bench/peers/child_process.h: one simulation after the other, each in a process of its own, so
// that its time and memory can be told.
#pragma once

#include <cstdio>

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

namespace regatta::peers {

// Prints what simulate() gives, in seconds, and what it took. Whether it went well.
template <typename Simulate>
bool run_and_report(const char* name, Simulate&& simulate) {
  std::fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    const double took = simulate();
    std::printf("%-14s simulated %8.3f ms", name, took * 1e3);
    std::fflush(stdout);
    _exit(0);
  }
  if (child < 0) return false;
  rusage usage{};
  int status = 0;
  wait4(child, &status, 0, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  std::printf("   in %7.3f s of a processor and %5ld MiB%s\n",
              seconds(usage.ru_utime) + seconds(usage.ru_stime), usage.ru_maxrss / 1024,
              status == 0 ? "" : ": it failed");
  return status == 0;
}

}  // namespace regatta::peers
