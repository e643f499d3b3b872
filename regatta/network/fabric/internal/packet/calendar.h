// fabric/internal/packet/calendar.h: what happens next. A calendar queue (Brown, "Calendar queues:
// a fast O(1) priority queue implementation for the simulation event set problem", CACM 1988) whose
// events are known beforehand by number, each at most once at a time, so that it never allocates
// for those that are near. Of events at one moment the one that was entered first comes first.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <limits>
#include <queue>
#include <vector>

#include "regatta/base/core/check.h"

namespace regatta::fabric::packet {

using Picoseconds = std::int64_t;
inline constexpr Picoseconds kNever = std::numeric_limits<Picoseconds>::max();

class Calendar {
 public:
  struct Event {
    Picoseconds at = kNever;
    std::uint32_t number = 0;
  };

  // Fast for events that lie less than `span` ahead.
  Calendar(std::size_t events, Picoseconds span) : entries_(events) {
    while ((kDays << shift_) < span)
      ++shift_;
  }

  // `number` has no date; `at` is not before the last one that was taken.
  void push(std::uint32_t number, Picoseconds at) {
    if ((at >> shift_) - today_ >= kDays) {
      far_.push({at, order_++, number});
      return;
    }
    enter(number, at);
  }

  // Takes the first one if it is not after `until`; otherwise none: `at` is kNever.
  Event pop(Picoseconds until) {
    if (near_ == 0 && (far_.empty() || !turn_to(far_.top().at, until))) return {};
    const std::size_t at = first_day();
    Day& day = days_[at];
    const std::uint32_t number = day.head;
    const Entry entry = entries_[number];
    if (entry.at > until) return {};
    day.head = entry.next;
    if (day.head == kNone) {
      bits_[at / 64] &= ~(1ULL << (at % 64));
      if (bits_[at / 64] == 0) words_ &= ~(1ULL << (at / 64));
    }
    --near_;
    if (const Picoseconds turned = entry.at >> shift_; turned != today_) {
      today_ = turned;
      if (!far_.empty()) bring_near();
    }
    return {entry.at, number};
  }

  bool empty() const { return near_ == 0 && far_.empty(); }

  // Calls use(at, number) for each in order; false: some lie too far ahead to say so.
  template <typename Use>
  bool for_each(Use&& use) const {
    for (Picoseconds day = 0; day < kDays && near_ != 0; ++day) {
      const auto place = static_cast<std::size_t>((today_ + day) % kDays);
      for (std::uint32_t number = days_[place].head; number != kNone;
           number = entries_[number].next)
        use(entries_[number].at, number);
    }
    return far_.empty();
  }

 private:
  static constexpr std::uint32_t kNone = ~0U;
  static constexpr Picoseconds kDays = 4096;  // 64 words of 64 bits

  struct Entry {
    Picoseconds at = 0;
    std::uint32_t next = kNone;
  };
  struct Day {
    std::uint32_t head = kNone;
    std::uint32_t tail = kNone;
  };
  struct Far {
    Picoseconds at;
    std::uint64_t order;
    std::uint32_t number;
    bool operator<(const Far& other) const {
      return at != other.at ? at > other.at : order > other.order;
    }
  };

  void enter(std::uint32_t number, Picoseconds at) {
    ++near_;
    const std::size_t place = static_cast<std::size_t>((at >> shift_) % kDays);
    Day& day = days_[place];
    Entry& entry = entries_[number];
    entry.at = at;
    if (day.head == kNone) {
      entry.next = kNone;
      day.head = day.tail = number;
      bits_[place / 64] |= 1ULL << (place % 64);
      words_ |= 1ULL << (place / 64);
    } else if (entries_[day.tail].at <= at) {
      entry.next = kNone;
      entries_[day.tail].next = number;
      day.tail = number;
    } else {
      std::uint32_t* before = &day.head;
      while (entries_[*before].at <= at)
        before = &entries_[*before].next;
      entry.next = *before;
      *before = number;
    }
  }

  bool turn_to(Picoseconds at, Picoseconds until) {
    if (at > until) return false;
    today_ = at >> shift_;
    bring_near();
    return true;
  }

  void bring_near() {
    while (!far_.empty() && (far_.top().at >> shift_) - today_ < kDays) {
      enter(far_.top().number, far_.top().at);
      far_.pop();
    }
  }

  // Of those with events, from today on and round.
  std::size_t first_day() const {
    const std::size_t start = static_cast<std::size_t>(today_ % kDays);
    const std::size_t word = start / 64;
    if (const std::uint64_t here = bits_[word] >> (start % 64); here != 0)
      return start + static_cast<std::size_t>(std::countr_zero(here));
    // The words after this one, then those up to it, whose days before today come last.
    const std::uint64_t after = word == 63 ? 0 : words_ >> (word + 1) << (word + 1);
    const auto found = static_cast<std::size_t>(std::countr_zero(after != 0 ? after : words_));
    return found * 64 + static_cast<std::size_t>(std::countr_zero(bits_[found]));
  }

  std::vector<Entry> entries_;  // per event
  std::vector<Day> days_ = std::vector<Day>(kDays);
  std::array<std::uint64_t, 64> bits_ = {};  // days with events
  std::uint64_t words_ = 0;                  // of `bits_` that are not 0
  int shift_ = 0;                            // a day has 2^shift_ picoseconds
  Picoseconds today_ = 0;
  std::size_t near_ = 0;
  std::priority_queue<Far> far_;  // on or after today_ + kDays
  std::uint64_t order_ = 0;
};

}  // namespace regatta::fabric::packet
