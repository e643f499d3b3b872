// sharing/internal/client/stream_events.h: points in a stream of a device that can be waited for
// and between which time is measured.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>

namespace regatta::sharing {

class StreamEvents {
 public:
  using Event = void*;

  StreamEvents() = default;
  StreamEvents(const StreamEvents&) = delete;
  StreamEvents& operator=(const StreamEvents&) = delete;
  virtual ~StreamEvents() = default;

  // By the launching thread: an event after the stream's work so far; null when there can be none.
  // Never for a stream that is being captured.
  virtual Event record(void* stream) = 0;

  // Surround captures of any stream of the process; without one, no stream is queried.
  void capture_begins() { captures_.fetch_add(1); }
  void capture_ends() { captures_.fetch_sub(1); }
  bool is_captured(void* stream) {
    return captures_.load(std::memory_order_relaxed) != 0 && is_capturing(stream);
  }

  // By the gate's worker, which calls begin_worker() first. Waits until the device has reached the
  // event, or it is known that it never will.
  virtual void begin_worker() {}
  virtual void wait(Event event) = 0;
  // Whether the device has reached it.
  virtual bool is_reached(Event event) = 0;
  // Both events were reached.
  virtual std::optional<std::uint64_t> between_ns(Event begin, Event end) = 0;
  virtual void release(Event event) = 0;

 private:
  virtual bool is_capturing(void* stream) = 0;

  std::atomic<int> captures_{0};
};

}  // namespace regatta::sharing
