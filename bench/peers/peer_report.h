// The line that a peer's rank 0 prints for each size.
#pragma once

#include <cstdio>
#include <vector>

namespace peer {

inline constexpr int kUsage = 2;
inline constexpr int kNoSuchOperation = 77;

inline void print_line(const char* bytes, long long wrong, const std::vector<double>& batches_s) {
  std::printf("{\"bytes\": %s, \"wrong\": %lld, \"batches_s\": [", bytes, wrong);
  for (std::size_t i = 0; i < batches_s.size(); ++i)
    std::printf("%s%.9g", i == 0 ? "" : ", ", batches_s[i]);
  std::printf("]}\n");
  std::fflush(stdout);
}

}  // namespace peer
