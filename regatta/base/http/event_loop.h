// http/event_loop.h: one thread's loop of sockets, timers and work that other threads hand over.
#pragma once

#include <functional>
#include <memory>

#include "regatta/base/core/units.h"

namespace regatta::http {

// Everything that belongs to a loop is touched by the thread in run() alone, except post() and
// stop(), which any thread may call. A loop outlives what was created on it.
class EventLoop {
 public:
  EventLoop();  // ends the process where the system has no descriptor left
  ~EventLoop();
  EventLoop(const EventLoop&) = delete;
  EventLoop& operator=(const EventLoop&) = delete;

  // Handles events until stop(); a loop without work waits.
  void run();
  // Handles what is ready without waiting; returns whether anything was. For tests.
  bool poll();
  void stop();
  // Runs `work` in the loop's thread, in the order of the calls.
  void post(std::function<void()> work);
  // Runs `work` once after `delay` (monotonic clock, at least 0).
  void after(Seconds delay, std::function<void()> work);

  // For this module's sources: the io_context of Boost.Asio.
  struct Impl;
  Impl& impl() { return *impl_; }

 private:
  std::unique_ptr<Impl> impl_;
};

}  // namespace regatta::http
