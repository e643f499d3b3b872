// sharing/internal/client/work_in_flight.h: how much work of a process is on a device, in ns of
// learned cost, how long the device worked for it, and when the rest will end. Time is an argument.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "regatta/gpu/sharing/internal/client/busy_time.h"

namespace regatta::sharing {

class WorkInFlight {
 public:
  // Any thread. Returns what was launched before, since the gate was made.
  std::uint64_t launch(std::uint64_t cost_ns) { return launched_.fetch_add(cost_ns); }
  void cancel(std::uint64_t cost_ns) { launched_ -= cost_ns; }
  std::uint64_t completed_ns() const { return completed_.load(); }
  std::uint64_t in_flight_ns() const { return launched_.load() - completed_.load(); }
  std::uint64_t used_ns() const { return used_.load(); }
  // Work of several streams at once, in parts of BusyTime::kOne.
  std::uint64_t concurrency() const { return concurrency_.load(); }
  // Whether any work of the period has completed.
  bool has_completed_any() const { return origin_.load(std::memory_order_relaxed) != kUnknown; }

  // When nothing is in flight, before the first launch.
  void begin_period(std::uint64_t now_ns) {
    origin_ = kUnknown;
    period_begin_ = now_ns;
    is_new_period_ = true;
  }

  // By one thread: work of this cost has completed; it took `used_ns` in its stream.
  void complete(std::uint64_t cost_ns, std::uint64_t used_ns, std::uint64_t now_ns) {
    if (cost_ns == 0) return;
    if (is_new_period_.exchange(false)) busy_.begin_period(period_begin_);
    used_ += busy_.add(used_ns, now_ns);
    concurrency_ = busy_.concurrency();
    completed_ += cost_ns;
    // Ends are seen late by varying amounts, so the earliest estimate is the best one. It loses
    // weight over time, because durations are not exact.
    const std::uint64_t origin = origin_.load();
    const std::uint64_t seen = now_ns - completed_.load();
    const std::uint64_t passed = now_ns - completed_at_;
    completed_at_ = now_ns;
    origin_ = origin == kUnknown ? seen : std::min(seen, origin + passed / 64);
  }

  // When all of it will have ended on a device that executes one stream at a time and nothing else.
  // `begin_ns` is when the first of it was launched.
  std::uint64_t expected_end(std::uint64_t begin_ns) const {
    const std::uint64_t origin = origin_.load();
    return origin == kUnknown ? begin_ns + in_flight_ns() : origin + launched_.load();
  }

 private:
  static constexpr std::uint64_t kUnknown = ~0ULL;

  alignas(64) std::atomic<std::uint64_t> launched_{0};
  alignas(64) std::atomic<std::uint64_t> completed_{0};
  // When none of it was completed, had the device worked without a pause since.
  std::atomic<std::uint64_t> origin_{kUnknown};
  std::atomic<std::uint64_t> used_{0};
  std::atomic<std::uint64_t> concurrency_{BusyTime::kOne};
  std::atomic<std::uint64_t> period_begin_{0};
  std::atomic<bool> is_new_period_{true};
  // Used by complete() only.
  BusyTime busy_;
  std::uint64_t completed_at_ = 0;
};

}  // namespace regatta::sharing
