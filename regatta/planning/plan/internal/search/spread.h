// plan/internal/search/spread.h: the work of a search on several threads.
#pragma once

#include <atomic>
#include <cstddef>
#include <thread>
#include <vector>

namespace regatta::plan {

// Calls `job` with 0 to count - 1, spread over the threads in the order of their numbers.
template <typename Job>
void spread(std::size_t count, int threads, const Job& job) {
  std::atomic<std::size_t> next = 0;
  const auto run = [&](int thread) {
    for (std::size_t i = next++; i < count; i = next++)
      job(i, thread);
  };
  std::vector<std::thread> others;
  for (int thread = 1; thread < threads; ++thread)
    others.emplace_back(run, thread);
  run(0);
  for (std::thread& other : others)
    other.join();
}

}  // namespace regatta::plan
