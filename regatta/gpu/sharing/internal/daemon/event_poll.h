// sharing/internal/daemon/event_poll.h: waits for descriptors that are readable; each has a source
// and a number.
#pragma once

#include <array>
#include <cerrno>
#include <cstdint>
#include <span>
#include <utility>

#include <sys/epoll.h>

#include "regatta/base/core/result.h"
#include "regatta/base/os/unique_fd.h"

namespace regatta::sharing {

enum class EventSource : std::uint32_t {
  kListener,
  kConnection,  // numbered by descriptor
  kProcess,     // numbered by client
  kTurnTimer,
  kEngineTimer,
  kResidencyTimer,
};

struct PollEvent {
  EventSource source = EventSource::kListener;
  int number = 0;
};

class EventPoll {
 public:
  static Result<EventPoll> create() {
    os::UniqueFd fd(::epoll_create1(EPOLL_CLOEXEC));
    if (!fd) return os::errno_error("cannot wait for clients");
    return EventPoll(std::move(fd));
  }

  // Until the descriptor is closed.
  bool add(int fd, EventSource source, int number = 0) {
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.u64 = static_cast<std::uint64_t>(source) << 32 | static_cast<std::uint32_t>(number);
    return ::epoll_ctl(fd_.get(), EPOLL_CTL_ADD, fd, &event) == 0;
  }

  // Waits at most `timeout_ms`. Valid until the next call.
  Result<std::span<const PollEvent>> wait(int timeout_ms) {
    std::array<epoll_event, kEventsMax> raw{};
    const int count = ::epoll_wait(fd_.get(), raw.data(), static_cast<int>(raw.size()), timeout_ms);
    if (count < 0 && errno != EINTR) return os::errno_error("cannot wait for clients");
    const std::size_t size = count < 0 ? 0 : static_cast<std::size_t>(count);
    for (std::size_t i = 0; i < size; ++i)
      events_[i] = {static_cast<EventSource>(raw[i].data.u64 >> 32),
                    static_cast<int>(raw[i].data.u64 & 0xffffffffU)};
    return std::span<const PollEvent>(events_.data(), size);
  }

 private:
  static constexpr std::size_t kEventsMax = 64;
  explicit EventPoll(os::UniqueFd fd) : fd_(std::move(fd)) {}

  os::UniqueFd fd_;
  std::array<PollEvent, kEventsMax> events_{};
};

}  // namespace regatta::sharing
