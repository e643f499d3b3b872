// sharing/internal/client/kernel_durations.h: how long kernels and graphs take on the device,
// learned as they run: a table without locks, of which a launch reads one entry. It only paces
// launches; what a tenant is charged is measured by the daemon.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "regatta/gpu/sharing/internal/ledger/page_layout.h"

namespace regatta::sharing {

class KernelDurations {
 public:
  // Of what has never been timed; each further launch of it is taken for longer, until the first
  // one has ended: many kernels may be new at once, but of one only few are in flight.
  static constexpr std::uint64_t kUnknownNs = 1'000'000;
  static constexpr std::uint64_t kUnknownMostNs = 64'000'000;

  static constexpr unsigned kFirst = 4;
  struct Entry {
    std::atomic<std::uint64_t> key{0};
    std::atomic<std::uint64_t> cost_ns{kUnknownNs};
    std::atomic<unsigned> launches{0};
    std::atomic<unsigned> samples{0};
    std::atomic<unsigned> wanted{kFirst};  // launches from now on that are to be timed
  };

  // Of a kernel with so many blocks, or of a graph (blocks 0).
  static std::uint64_t key_of(const void* function, std::uint64_t blocks) {
    const auto address = reinterpret_cast<std::uintptr_t>(function);
    return (static_cast<std::uint64_t>(address) ^ blocks * 0x9e3779b97f4a7c15ULL) | 1U;
  }

  // The entry of `key`, made when there is none; when the table is full, one for all others.
  Entry& find(std::uint64_t key) {
    std::size_t at = (key * 0x9e3779b97f4a7c15ULL) >> (64 - kBits);
    for (std::size_t i = 0; i < kProbes; ++i, at = (at + 1) % kEntries) {
      Entry& entry = entries_[at];
      std::uint64_t there = entry.key.load(std::memory_order_relaxed);
      if (there == key) return entry;
      if (there == 0 && entry.key.compare_exchange_strong(there, key)) return entry;
      if (there == key) return entry;  // another thread was faster
    }
    return others_;
  }

  // Begins anew with what has this key.
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

  // Counts a launch; whether this one is to be timed: all until the first has ended, for nobody
  // knows what they cost, some more, then now and then.
  static bool is_to_be_timed(Entry& entry) {
    const unsigned launches = entry.launches.load(std::memory_order_relaxed);
    entry.launches.store(launches + 1, std::memory_order_relaxed);
    // Before the samples, of which learn() tells first: where there are none, this was not learned.
    std::uint64_t cost = entry.cost_ns.load(std::memory_order_acquire);
    if (entry.samples.load(std::memory_order_relaxed) == 0) {
      // Where it fails, the first lesson came just now.
      entry.cost_ns.compare_exchange_strong(cost, std::min(4 * cost, kUnknownMostNs));
      return true;
    }
    const unsigned wanted = entry.wanted.load(std::memory_order_relaxed);
    if (wanted != 0) entry.wanted.store(wanted - 1, std::memory_order_relaxed);
    return wanted != 0 || launches % 256 == 0 ||
           (entry.cost_ns.load(std::memory_order_relaxed) >= kLongNs && launches % 8 == 0);
  }

  // One thread at a time. `may_have_waited`: the device may have worked for somebody else in the
  // time measured, at most for REGATTA_LEAD_MOST_NS: what is longer than known by that tells
  // little.
  static void learn(Entry& entry, std::uint64_t measured_ns, bool may_have_waited) {
    const unsigned samples = entry.samples.load(std::memory_order_relaxed);
    entry.samples.store(samples + 1, std::memory_order_relaxed);
    const std::uint64_t cost = entry.cost_ns.load(std::memory_order_relaxed);
    std::uint64_t next = measured_ns;
    if (samples != 0 && measured_ns <= cost) {
      next = cost - (cost - measured_ns) / (may_have_waited ? 2 : 4);
    } else if (samples != 0) {
      const std::uint64_t more = measured_ns - cost;
      const std::uint64_t sure =
          may_have_waited ? more - std::min<std::uint64_t>(more, REGATTA_LEAD_MOST_NS) : more;
      next = cost + std::max(sure / 4, more / 32);
    }
    entry.cost_ns.store(next < kLeastNs ? kLeastNs : next, std::memory_order_release);
  }

 private:
  static constexpr unsigned kBits = 12;
  static constexpr std::size_t kEntries = 1U << kBits;
  static constexpr std::size_t kProbes = 16;
  static constexpr std::uint64_t kLongNs = 100'000;
  static constexpr std::uint64_t kLeastNs = 500;  // a launch is never for nothing

  std::array<Entry, kEntries> entries_{};
  Entry others_;
  std::atomic<std::uint64_t> forgotten_launches_{0};
};

}  // namespace regatta::sharing
