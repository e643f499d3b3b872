// bench/internal/batches.h: how a collective is timed, the same for all contenders: calls back to
// back in batches of some 30 ms, a barrier before each, the slowest rank counts. Header only: the
// programs of the peers (bench/peers) share it.
#pragma once

#include <algorithm>
#include <chrono>
#include <vector>

namespace regatta::bench {

inline constexpr double kBatchSeconds = 0.03;
inline constexpr int kCallsMax = 5000;
inline constexpr int kWarmUpCalls = 3;

// Seconds of one call, per batch. `call`, `barrier`: false when they failed; `largest` returns the
// largest of the ranks' values, or a negative one. Empty when one of them failed.
template <typename Call, typename Barrier, typename Largest>
std::vector<double> time_batches(int batches, const Call& call, const Barrier& barrier,
                                 const Largest& largest) {
  using Clock = std::chrono::steady_clock;
  const auto time = [&](int calls) {
    if (!barrier()) return -1.0;
    const Clock::time_point start = Clock::now();
    for (int i = 0; i < calls; ++i)
      if (!call()) return -1.0;
    return largest(std::chrono::duration<double>(Clock::now() - start).count() / calls);
  };
  const double first = time(kWarmUpCalls);
  if (first < 0) return {};
  const double wanted = kBatchSeconds / std::max(first, 1e-9);
  const int calls = static_cast<int>(std::clamp(wanted, 1.0, static_cast<double>(kCallsMax)));
  if (time(calls) < 0) return {};
  std::vector<double> times;
  for (int batch = 0; batch < batches; ++batch) {
    const double seconds = time(calls);
    if (seconds < 0) return {};
    times.push_back(seconds);
  }
  return times;
}

}  // namespace regatta::bench
