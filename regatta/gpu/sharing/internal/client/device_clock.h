// sharing/internal/client/device_clock.h: when the device reached events, on the host's clock. The
// host sees an event late by varying amounts; the time between two events is exact. Pure.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

namespace regatta::sharing {

class DeviceClock {
 public:
  // The device reached an event `since_ns` after the one of the last call (none: unknown), and the
  // host saw it at `seen_ns`. When the device reached it, in ns of the host's clock; never after
  // `seen_ns`.
  std::uint64_t reached(std::optional<std::uint64_t> since_ns, std::uint64_t seen_ns) {
    const std::uint64_t passed = seen_ns - std::min(seen_ns, seen_ns_);
    const bool is_known = since_ns && seen_ns_ != 0 && passed < kLongNs;
    // The earliest estimate is the best one. It loses weight over time, for clocks drift.
    reached_ns_ =
        is_known ? std::min(seen_ns, reached_ns_ + *since_ns + passed / kDriftParts) : seen_ns;
    seen_ns_ = seen_ns;
    return reached_ns_;
  }

 private:
  // The driver's time between events has 24 bits of precision.
  static constexpr std::uint64_t kLongNs = 1'000'000'000;
  static constexpr std::uint64_t kDriftParts = 4096;

  std::uint64_t reached_ns_ = 0;
  std::uint64_t seen_ns_ = 0;  // 0: no event yet
};

}  // namespace regatta::sharing
