// sharing/internal/daemon/timer_fd.h: a descriptor that becomes readable at a time of
// CLOCK_MONOTONIC.
#pragma once

#include <cstdint>
#include <utility>

#include "regatta/base/core/result.h"
#include "regatta/base/os/unique_fd.h"

namespace regatta::sharing {

class TimerFd {
 public:
  static constexpr std::uint64_t kNever = ~0ULL;

  static Result<TimerFd> create();

  int descriptor() const { return timer_.get(); }
  // Replaces the time before; kNever: disarms.
  void set(std::uint64_t at_ns);
  // Call when the descriptor is readable: returns the time that was set and disarms; kNever when
  // that time has not come.
  std::uint64_t acknowledge();

 private:
  explicit TimerFd(os::UniqueFd timer) : timer_(std::move(timer)) {}

  os::UniqueFd timer_;
  std::uint64_t set_ns_ = kNever;
};

}  // namespace regatta::sharing
