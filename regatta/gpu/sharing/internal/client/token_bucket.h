// sharing/internal/client/token_bucket.h: when the next piece may be given to a rate-limited
// engine: a bucket of kBurstNs. Pure; time is an argument.
#pragma once

#include <algorithm>
#include <cstdint>

namespace regatta::sharing {

// How far ahead of its rate a process may be, so that short pieces do not wait and the engine
// always has work while the process is awake.
inline constexpr std::uint64_t kBurstNs = 10'000'000;

class TokenBucket {
 public:
  // How long to wait until a piece may be given at `per_second` units; 0: now. Over any time that
  // begins with a wait at most rate x (time + kBurstNs) and one piece are given. The rate may
  // change with each call; 0 means no limit, and clears the bucket.
  std::uint64_t wait_ns(std::uint64_t per_second, std::uint64_t now_ns) {
    const double rate = static_cast<double>(per_second) * 1e-9;  // a nanosecond
    const std::uint64_t passed = now_ns - std::min(last_ns_, now_ns);
    last_ns_ = std::max(last_ns_, now_ns);
    backlog_ = std::max(0.0, backlog_ - rate * static_cast<double>(passed));
    if (per_second == 0) backlog_ = 0;
    const double ahead = rate * static_cast<double>(kBurstNs);
    if (backlog_ <= ahead) return 0;
    return static_cast<std::uint64_t>((backlog_ - ahead) / rate) + 1;
  }
  void grant(std::uint64_t units) { backlog_ += static_cast<double>(units); }

 private:
  double backlog_ = 0;  // units given ahead of the rate
  std::uint64_t last_ns_ = 0;
};

// Size of the pieces of a large transfer, so that it is at most one piece ahead of the next: the
// tokens of kBurstNs, at least `least`.
inline std::uint64_t rate_limited_piece(std::uint64_t per_second, std::uint64_t least) {
  return std::max(per_second / (1'000'000'000 / kBurstNs), least);
}

}  // namespace regatta::sharing
