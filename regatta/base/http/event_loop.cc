#include "regatta/base/http/event_loop.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <utility>

#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>

#include "regatta/base/core/result.h"
#include "regatta/base/http/internal/event_loop_impl.h"

namespace regatta::http {

EventLoop::EventLoop() {
  try {
    impl_ = std::make_unique<Impl>();
  } catch (const std::exception&) {
    // Without a descriptor for epoll a process can serve nothing.
    REGATTA_CHECK(impl_ != nullptr);
  }
}

EventLoop::~EventLoop() = default;

void EventLoop::run() {
  if (impl_->context.stopped()) impl_->context.restart();
  impl_->context.run();
}

bool EventLoop::poll() {
  if (impl_->context.stopped()) impl_->context.restart();
  return impl_->context.poll() > 0;
}

void EventLoop::stop() {
  impl_->context.stop();
}

void EventLoop::post(std::function<void()> work) {
  boost::asio::post(impl_->context, std::move(work));
}

void EventLoop::after(Seconds delay, std::function<void()> work) {
  const std::chrono::duration<double> wait(std::clamp(delay.value, 0.0, 1e9));
  auto timer = std::make_shared<boost::asio::steady_timer>(
      impl_->context, std::chrono::duration_cast<std::chrono::nanoseconds>(wait));
  timer->async_wait([timer, work = std::move(work)](const boost::system::error_code& error) {
    if (!error) work();
  });
}

}  // namespace regatta::http
