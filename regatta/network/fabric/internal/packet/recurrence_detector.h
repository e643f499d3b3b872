// fabric/internal/packet/recurrence_detector.h: detects a state (packets in flight, queues, pending
// events) that occurred before: the events since then repeat until a message begins or ends. It is
// checked where pauses come and go, since rates there are periodic, but not steady.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "regatta/base/core/stats.h"
#include "regatta/network/fabric/internal/packet/packet.h"
#include "regatta/network/fabric/internal/packet/steady_state_detector.h"

namespace regatta::fabric::packet {

// The fingerprint of a state, by parts in order: two sums of 64 bits, mixed as SplitMix64 does.
class StateFingerprint {
 public:
  // Flow numbers are added relative to `base`.
  explicit StateFingerprint(std::uint32_t base = 0) : base_(base) {}

  void add_flow(std::uint32_t flow) { add(std::uint32_t{flow - base_}); }
  void add(std::uint64_t part) {
    a_ = splitmix(a_ ^ part);
    b_ = splitmix_finish((b_ + part) * 0xff51afd7ed558ccdU + 1);
  }
  void add(const Packet& packet) {
    add(std::uint64_t{packet.flow - base_} << 32U | packet.connection);
    add(std::uint64_t{packet.next} << 32U | packet.from);
    add(std::uint64_t{packet.bytes} << 16U | std::uint64_t{packet.hops} << 8U |
        std::uint64_t{packet.is_retransmit} << 1U | std::uint64_t{packet.is_marked});
  }
  friend bool operator==(const StateFingerprint& one, const StateFingerprint& other) {
    return one.a_ == other.a_ && one.b_ == other.b_;
  }

 private:
  std::uint32_t base_;
  std::uint64_t a_ = 0;
  std::uint64_t b_ = 0;
};

// A period that repeats from now on.
struct RecurrencePeriod {
  Picoseconds time = 0;
  std::vector<std::uint64_t> bytes;  // that each ActiveSend sends in it
};

class RecurrenceDetector {
 public:
  // A message begins or ends.
  void changed() {
    anchor_ = kNone;
    seen_.clear();
  }

  // Whether to check the state now that a pause frame has reached the begin of `link`: at those of
  // the first such link, a limited number of times.
  bool should_check(std::uint32_t link) {
    if (anchor_ == kNone) anchor_ = link;
    return anchor_ == link && seen_.size() < kMost;
  }

  std::optional<RecurrencePeriod> find_period(const StateFingerprint& fingerprint,
                                              std::vector<ActiveSend> sending, Picoseconds now) {
    for (const Seen& one : seen_) {
      if (one.fingerprint != fingerprint || one.sending.size() != sending.size()) continue;
      RecurrencePeriod period{.time = now - one.at};
      for (std::size_t i = 0; i < sending.size(); ++i)
        period.bytes.push_back(one.sending[i].left - sending[i].left);
      stop();
      return period;
    }
    seen_.push_back({fingerprint, now, std::move(sending)});
    return std::nullopt;
  }

  // Stops checks until changed().
  void stop() {
    seen_.clear();
    anchor_ = kStopped;
  }

 private:
  static constexpr std::size_t kMost = 200;
  static constexpr std::uint32_t kStopped = kNone - 1;
  struct Seen {
    StateFingerprint fingerprint;
    Picoseconds at;
    std::vector<ActiveSend> sending;
  };

  std::uint32_t anchor_ = kNone;  // the link whose pause frames trigger checks
  std::vector<Seen> seen_;
};

}  // namespace regatta::fabric::packet
