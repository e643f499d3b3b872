// sharing/internal/client/kernel_durations.h: durations of kernels and graphs on the device,
// learned as they run: a lock-free table, of which a launch reads one entry. It only paces
// launches; a tenant is charged by when its work ended (page_layout.h, regatta_work_marks).
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "regatta/base/core/stats.h"
#include "regatta/gpu/sharing/internal/ledger/page_layout.h"

namespace regatta::sharing {

class KernelDurations {
 public:
  // Assumed for a kernel that was never timed. Each further launch before the first has ended is
  // assumed to be longer: many kernels may be new at once, but only few launches of one are in
  // flight.
  static constexpr std::uint64_t kUnknownNs = 1'000'000;
  static constexpr std::uint64_t kUnknownMostNs = 64'000'000;

  // `seed` decides which launches are timed.
  explicit KernelDurations(std::uint64_t seed = 1) : seed_(seed) {}

  static constexpr unsigned kFirst = 4;
  struct Entry {
    std::atomic<std::uint64_t> key{0};
    std::atomic<std::uint64_t> cost_ns{kUnknownNs};
    std::atomic<unsigned> launches{0};
    std::atomic<unsigned> samples{0};
    std::atomic<unsigned> wanted{kFirst};  // number of next launches to time
    std::atomic<std::uint64_t> seed{1};
  };

  // The key of a kernel with `blocks` blocks, or of a graph (0 blocks).
  static std::uint64_t key_of(const void* function, std::uint64_t blocks) {
    const auto address = reinterpret_cast<std::uintptr_t>(function);
    return (static_cast<std::uint64_t>(address) ^ blocks * 0x9e3779b97f4a7c15ULL) | 1U;
  }

  // The entry of `key`, made when there is none; in a full table, one entry for all others.
  Entry& find(std::uint64_t key) {
    std::size_t at = (key * 0x9e3779b97f4a7c15ULL) >> (64 - kBits);
    for (std::size_t i = 0; i < kProbes; ++i, at = (at + 1) % kEntries) {
      Entry& entry = entries_[at];
      std::uint64_t there = entry.key.load(std::memory_order_relaxed);
      if (there == key) return entry;
      if (there == 0 && entry.key.compare_exchange_strong(there, key)) {
        entry.seed.store(splitmix(seed_ ^ key), std::memory_order_relaxed);
        return entry;
      }
      if (there == key) return entry;  // another thread was faster
    }
    return others_;
  }

  // Forgets what was learned of this key.
  void forget(std::uint64_t key) {
    Entry& entry = find(key);
    if (&entry == &others_) return;
    forgotten_launches_.fetch_add(entry.launches.exchange(0), std::memory_order_relaxed);
    entry.samples.store(0, std::memory_order_relaxed);
    entry.wanted.store(kFirst, std::memory_order_relaxed);
    entry.cost_ns.store(kUnknownNs, std::memory_order_relaxed);
  }

  std::uint64_t launches() const {
    std::uint64_t sum = forgotten_launches_.load(std::memory_order_relaxed);
    for (const Entry& entry : entries_)
      sum += entry.launches.load(std::memory_order_relaxed);
    return sum + others_.launches.load(std::memory_order_relaxed);
  }

  // Counts a launch. True when it is to be timed: all launches until the first has ended, then some
  // more, then one in 256 at random, or one in 4 of long kernels: no pattern of a program's kernels
  // goes with that.
  static bool is_to_be_timed(Entry& entry) {
    const unsigned launches = entry.launches.load(std::memory_order_relaxed);
    entry.launches.store(launches + 1, std::memory_order_relaxed);
    // Read before the samples, which learn() writes first: without samples, this cost was not
    // learned.
    std::uint64_t cost = entry.cost_ns.load(std::memory_order_acquire);
    if (entry.samples.load(std::memory_order_relaxed) == 0) {
      // It fails when the first duration was learned just now.
      entry.cost_ns.compare_exchange_strong(cost, std::min(4 * cost, kUnknownMostNs));
      return true;
    }
    const unsigned wanted = entry.wanted.load(std::memory_order_relaxed);
    if (wanted != 0) entry.wanted.store(wanted - 1, std::memory_order_relaxed);
    const std::uint64_t random =
        splitmix(entry.seed.load(std::memory_order_relaxed) + launches * kSplitMixStep);
    return wanted != 0 || random % 256 == 0 ||
           (random % 4 == 0 && entry.cost_ns.load(std::memory_order_relaxed) >= kLongNs);
  }

  // One thread at a time. `may_have_waited`: the measured time may include a slice of another
  // tenant's, so a longer duration within that teaches little. A kernel that takes now a short, now
  // a long time is to be known by its mean: after the first samples each one moves it little.
  static void learn(Entry& entry, std::uint64_t measured_ns, bool may_have_waited) {
    const unsigned samples = entry.samples.load(std::memory_order_relaxed);
    entry.samples.store(samples + 1, std::memory_order_relaxed);
    const std::uint64_t cost = entry.cost_ns.load(std::memory_order_relaxed);
    std::uint64_t next = measured_ns;
    const std::uint64_t weight = samples < kFirstSamples ? 4 : 16;
    if (samples != 0 && measured_ns <= cost) {
      next = cost - (cost - measured_ns) / (may_have_waited ? weight / 2 : weight);
    } else if (samples != 0) {
      const std::uint64_t more = measured_ns - cost;
      const std::uint64_t sure =
          may_have_waited ? more - std::min<std::uint64_t>(more, REGATTA_TIME_SLICE_NS) : more;
      next = cost + std::max(sure / weight, more / 32);
    }
    entry.cost_ns.store(next < kLeastNs ? kLeastNs : next, std::memory_order_release);
  }

 private:
  static constexpr unsigned kBits = 12;
  static constexpr std::size_t kEntries = 1U << kBits;
  static constexpr std::size_t kProbes = 16;
  static constexpr std::uint64_t kLongNs = 100'000;
  static constexpr unsigned kFirstSamples = 16;
  static constexpr std::uint64_t kLeastNs = 500;  // a launch always costs something

  std::array<Entry, kEntries> entries_{};
  Entry others_;
  const std::uint64_t seed_;
  std::atomic<std::uint64_t> forgotten_launches_{0};
};

}  // namespace regatta::sharing
