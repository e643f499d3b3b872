// fabric/internal/packet/calendar_queue.h: a priority queue of events. A calendar queue (Brown,
// "Calendar queues: a fast O(1) priority queue implementation for the simulation event set
// problem", CACM 1988) whose events have numbers known beforehand, each queued at most once, so
// that near events need no allocation. Events at the same time leave in the order of entry.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <limits>
#include <queue>
#include <vector>

#include "regatta/base/core/ids.h"
#include "regatta/base/core/result.h"

namespace regatta::fabric::packet {

using Picoseconds = std::int64_t;
inline constexpr Picoseconds kNever = std::numeric_limits<Picoseconds>::max();

class CalendarQueue {
 public:
  struct Event {
    Picoseconds at = kNever;
    std::uint32_t number = 0;
  };

  // Fast for events that lie less than `span` ahead.
  CalendarQueue(std::size_t events, Picoseconds span) : entries_(events) {
    while ((kBuckets << shift_) < span)
      ++shift_;
  }

  // `number` is not queued; `at` is not before the last event popped.
  void push(std::uint32_t number, Picoseconds at) {
    if ((at >> shift_) - current_ >= kBuckets) {
      overflow_.push({at, order_++, number});
      return;
    }
    enter(number, at);
  }

  // Pops the first event if it is not after `until`; else returns an event with `at` kNever.
  Event pop(Picoseconds until) {
    if (in_buckets_ == 0 && (overflow_.empty() || !advance_to(overflow_.top().at, until)))
      return {};
    const std::size_t at = first_bucket();
    Bucket& bucket = buckets_[at];
    const std::uint32_t number = bucket.head;
    const Entry entry = entries_[number];
    if (entry.at > until) return {};
    bucket.head = entry.next;
    if (bucket.head == kNone) {
      bits_[at / 64] &= ~(1ULL << (at % 64));
      if (bits_[at / 64] == 0) words_ &= ~(1ULL << (at / 64));
    }
    --in_buckets_;
    if (const Picoseconds turned = entry.at >> shift_; turned != current_) {
      current_ = turned;
      if (!overflow_.empty()) move_from_overflow();
    }
    return {entry.at, number};
  }

  bool empty() const { return in_buckets_ == 0 && overflow_.empty(); }

  // Calls use(at, number) for each event in the buckets, in order; false: some lie beyond them.
  template <typename Use>
  bool for_each(Use&& use) const {
    for (Picoseconds bucket = 0; bucket < kBuckets && in_buckets_ != 0; ++bucket) {
      const std::size_t place = as_index((current_ + bucket) % kBuckets);
      for (std::uint32_t number = buckets_[place].head; number != kNone;
           number = entries_[number].next)
        use(entries_[number].at, number);
    }
    return overflow_.empty();
  }

 private:
  static constexpr std::uint32_t kNone = ~0U;
  static constexpr Picoseconds kBuckets = 4096;  // 64 words of 64 bits

  struct Entry {
    Picoseconds at = 0;
    std::uint32_t next = kNone;
  };
  struct Bucket {
    std::uint32_t head = kNone;
    std::uint32_t tail = kNone;
  };
  struct OverflowEvent {
    Picoseconds at;
    std::uint64_t order;
    std::uint32_t number;
    bool operator<(const OverflowEvent& other) const {
      return at != other.at ? at > other.at : order > other.order;
    }
  };

  void enter(std::uint32_t number, Picoseconds at) {
    ++in_buckets_;
    const std::size_t place = as_index((at >> shift_) % kBuckets);
    Bucket& bucket = buckets_[place];
    Entry& entry = entries_[number];
    entry.at = at;
    if (bucket.head == kNone) {
      entry.next = kNone;
      bucket.head = bucket.tail = number;
      bits_[place / 64] |= 1ULL << (place % 64);
      words_ |= 1ULL << (place / 64);
    } else if (entries_[bucket.tail].at <= at) {
      entry.next = kNone;
      entries_[bucket.tail].next = number;
      bucket.tail = number;
    } else {
      std::uint32_t* before = &bucket.head;
      while (entries_[*before].at <= at)
        before = &entries_[*before].next;
      entry.next = *before;
      *before = number;
    }
  }

  bool advance_to(Picoseconds at, Picoseconds until) {
    if (at > until) return false;
    current_ = at >> shift_;
    move_from_overflow();
    return true;
  }

  void move_from_overflow() {
    while (!overflow_.empty() && (overflow_.top().at >> shift_) - current_ < kBuckets) {
      enter(overflow_.top().number, overflow_.top().at);
      overflow_.pop();
    }
  }

  // The first bucket with events, from the current one on, cyclically.
  std::size_t first_bucket() const {
    const std::size_t start = as_index(current_ % kBuckets);
    const std::size_t word = start / 64;
    if (const std::uint64_t here = bits_[word] >> (start % 64); here != 0)
      return start + as_index(std::countr_zero(here));
    // The words after this one, then those up to it, whose buckets before the current one come
    // last.
    const std::uint64_t after = word == 63 ? 0 : words_ >> (word + 1) << (word + 1);
    const std::size_t found = as_index(std::countr_zero(after != 0 ? after : words_));
    return found * 64 + as_index(std::countr_zero(bits_[found]));
  }

  std::vector<Entry> entries_;  // per event
  std::vector<Bucket> buckets_ = std::vector<Bucket>(kBuckets);
  std::array<std::uint64_t, 64> bits_ = {};  // buckets with events
  std::uint64_t words_ = 0;                  // of `bits_` that are not 0
  int shift_ = 0;                            // a bucket has 2^shift_ picoseconds
  Picoseconds current_ = 0;
  std::size_t in_buckets_ = 0;
  std::priority_queue<OverflowEvent> overflow_;  // on or after current_ + kBuckets
  std::uint64_t order_ = 0;
};

}  // namespace regatta::fabric::packet
