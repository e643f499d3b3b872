// sharing/internal/client/stream_lanes.h: the launched work of a process by stream, in ns of
// learned cost, so that streams share the room of a device.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>

namespace regatta::sharing {

// A stream, or several whose addresses have the same hash.
struct StreamLane {
  std::atomic<std::uint64_t> recorded_ns{0};    // in flight, before the last event
  std::atomic<std::uint64_t> unrecorded_ns{0};  // launched after it
  // Guarded by the gate's mutex.
  std::uint64_t ends_ns = 0;  // on CLOCK_MONOTONIC, if the stream never waits for others
  unsigned turn = 0;          // the last turn in which it was used; 0: none

  std::uint64_t in_flight_ns() const {
    return recorded_ns.load(std::memory_order_relaxed) +
           unrecorded_ns.load(std::memory_order_relaxed);
  }
};

class StreamLanes {
 public:
  static constexpr std::uint64_t kUnlimited = ~0ULL;

  // Any thread.
  StreamLane& of(void* stream) {
    const auto address = reinterpret_cast<std::uintptr_t>(stream);
    return lanes_[(address * 0x9e3779b97f4a7c15ULL) >> 58];
  }

  // With the gate's mutex, as all below.
  void begin_turn() { ++turns_; }
  void mark_used(StreamLane& lane) const { lane.turn = turns_; }
  // Each stream in use gets an equal part of `room_ns`. Otherwise the first one takes all of it,
  // and the device executes one stream where it could execute several at once.
  std::uint64_t room(std::uint64_t room_ns) const {
    const auto used = std::ranges::count_if(lanes_, [this](const StreamLane& lane) {
      return lane.turn != 0 && lane.turn + 1 >= turns_;
    });
    return used <= 1 ? kUnlimited : room_ns / static_cast<std::uint64_t>(used) + 1;
  }
  std::uint64_t ends_ns() const {
    std::uint64_t ends = 0;
    for (const StreamLane& lane : lanes_)
      ends = std::max(ends, lane.ends_ns);
    return ends;
  }
  // Takes the work of all lanes that has no event after it; calls use(cost) for each lane.
  template <typename F>
  void consume_unrecorded(F&& use) {
    for (StreamLane& lane : lanes_)
      use(lane.unrecorded_ns.exchange(0));
  }

 private:
  std::array<StreamLane, 64> lanes_{};
  unsigned turns_ = 0;  // that the process has entered
};

}  // namespace regatta::sharing
