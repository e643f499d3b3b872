// http/internal/event_loop_impl.h: the loop's io_context of Boost.Asio, for this module's sources.
#pragma once

#include <array>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>

#include "regatta/base/http/event_loop.h"

namespace regatta::http {

struct EventLoop::Impl {
  // One thread runs it, so that Asio queues work of that thread without a lock or a system call.
  boost::asio::io_context context{1};
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> guard{
      context.get_executor()};
  // For the bytes that a socket reads in its turn; no connection holds a buffer while it is idle.
  std::array<char, 64 << 10> scratch;
};

}  // namespace regatta::http
