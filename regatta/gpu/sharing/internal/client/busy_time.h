// sharing/internal/client/busy_time.h: how long the device worked for a process, from how long each
// piece of its work took: what streams do at once counts once. Pure; time is an argument.
#pragma once

#include <algorithm>
#include <cstdint>

namespace regatta::sharing {

class BusyTime {
 public:
  // Nothing was in flight then; what follows is a new period.
  void begin_period(std::uint64_t now_ns) {
    begin_ns_ = now_ns;
    taken_ns_ = counted_ns_ = 0;
  }

  // Work that took `took_ns` in its stream was seen to have ended. How much more the device worked
  // for the process: over a period never more than has passed.
  std::uint64_t add(std::uint64_t took_ns, std::uint64_t now_ns) {
    const std::uint64_t passed = now_ns - std::min(now_ns, begin_ns_);
    taken_ns_ += took_ns;
    learn(took_ns, now_ns);
    // Work that was seen late is counted later, but no more than that: the device may be idle then.
    const std::uint64_t counted = std::min(taken_ns_, passed);
    taken_ns_ = std::min(taken_ns_, passed + kLateNs);
    const std::uint64_t more = counted - std::min(counted, counted_ns_);
    counted_ns_ += more;
    return more;
  }

  // How much work the device does in a nanosecond, counted as if the streams took turns; at least
  // 1, in parts of 1024.
  static constexpr std::uint64_t kOne = 1024;
  std::uint64_t concurrency() const { return concurrency_; }

 private:
  static constexpr std::uint64_t kLateNs = 200'000;
  static constexpr std::uint64_t kWindowNs = 2'000'000;

  void learn(std::uint64_t took_ns, std::uint64_t now_ns) {
    window_taken_ns_ += took_ns;
    if (window_begin_ns_ < begin_ns_ || window_begin_ns_ > now_ns) {
      window_begin_ns_ = begin_ns_;
      window_taken_ns_ = took_ns;
    }
    const std::uint64_t passed = now_ns - window_begin_ns_;
    if (passed < kWindowNs) return;
    const std::uint64_t seen = std::max(kOne, window_taken_ns_ * kOne / passed);
    concurrency_ = (3 * concurrency_ + seen) / 4;
    window_begin_ns_ = now_ns;
    window_taken_ns_ = 0;
  }

  std::uint64_t begin_ns_ = 0;
  std::uint64_t taken_ns_ = 0;    // in the period
  std::uint64_t counted_ns_ = 0;  // of it
  std::uint64_t concurrency_ = kOne;
  std::uint64_t window_begin_ns_ = 0;
  std::uint64_t window_taken_ns_ = 0;
};

}  // namespace regatta::sharing
