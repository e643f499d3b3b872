// sharing/internal/client/work_in_flight.h: how much work of a process is on a device, in ns of
// learned cost, how long the device worked for it, and when the rest will end. Time is an argument.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "regatta/gpu/sharing/internal/client/busy_time.h"
#include "regatta/gpu/sharing/internal/client/launch_pace.h"

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
  // When the device ended the last work that has completed; 0: none has.
  std::uint64_t ended_ns() const { return ended_.load(); }
  // Since when what is in flight is not in used_ns(); 0: nothing is in flight.
  std::uint64_t busy_since_ns() const {
    return in_flight_ns() == 0 ? 0 : std::max(ended_.load(), period_begin_.load());
  }
  // How much of `room_ns` to fill with launches.
  std::uint64_t room(std::uint64_t room_ns) const {
    return room_ns * LaunchPace::kOne / stretch_.load();
  }
  // Whether any work of the period has completed.
  bool has_completed_any() const { return origin_.load(std::memory_order_relaxed) != kUnknown; }

  // When nothing is in flight, before the first launch.
  void begin_period(std::uint64_t now_ns) {
    origin_ = kUnknown;
    period_begin_ = now_ns;
    is_new_period_ = true;
  }

  // Work that has completed: it took `used_ns` in its stream, and the device ended it at
  // `ended_ns`. All of it was launched at `launched_ns`.
  struct Completion {
    std::uint64_t cost_ns = 0;
    std::uint64_t used_ns = 0;
    std::uint64_t launched_ns = 0;
    std::uint64_t ended_ns = 0;
    // Since the completion before, by the device's own clock; 0: unknown.
    std::uint64_t since_last_ns = 0;
  };
  // By one thread, which saw that at `now_ns`, not before `ended_ns`.
  void complete(const Completion& done, std::uint64_t now_ns) {
    const auto [cost_ns, used_ns, launched_ns, ended_ns, since_last_ns] = done;
    if (cost_ns == 0) return;
    // The device may have been idle before.
    const std::uint64_t begun = std::max({ended_.load(), period_begin_.load(), launched_ns});
    const bool is_new_period = is_new_period_.exchange(false);
    if (is_new_period) busy_.begin_period(period_begin_);
    used_ += busy_.add(used_ns, ended_ns);
    concurrency_ = busy_.concurrency();
    // The first of a period may have waited for other tenants' work.
    if (!is_new_period && ended_ns > begun)
      pace_.learn(cost_ns, std::min(since_last_ns, ended_ns - begun));
    stretch_ = pace_.stretch();
    ended_ = std::max(ended_.load(), ended_ns);
    completed_ += cost_ns;
    // Ends are seen late by varying amounts, so the earliest estimate is the best one. It loses
    // weight over time, because durations are not exact.
    const std::uint64_t origin = origin_.load();
    const std::uint64_t seen = now_ns - completed_.load();
    const std::uint64_t passed = now_ns - completed_at_;
    completed_at_ = now_ns;
    origin_ = origin == kUnknown ? seen : std::min(seen, origin + passed / 64);
  }

  // Nothing was in flight until now, but the turn was kept for more.
  void keep_until(std::uint64_t now_ns) { ended_ = std::max(ended_.load(), now_ns); }

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
  std::atomic<std::uint64_t> ended_{0};
  std::atomic<std::uint64_t> stretch_{LaunchPace::kOne};
  // Used by complete() only.
  BusyTime busy_;
  LaunchPace pace_;
  std::uint64_t completed_at_ = 0;
};

}  // namespace regatta::sharing
