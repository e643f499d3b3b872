#include "regatta/base/http/internal/async_socket.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include <sys/socket.h>

#include "regatta/base/http/internal/event_loop_impl.h"
#include "regatta/base/os/clock.h"
#include "regatta/base/os/unique_fd.h"

namespace regatta::http {
namespace {

using boost::asio::ip::tcp;
using tls::StreamProgress;

// How long a peer may take to end after our end.
constexpr Seconds kEndLimit{2};
// Above this, sent bytes are removed before the rest has left.
constexpr std::size_t kCompactBytes = 256 << 10;
// One turn of a connection takes at most so much, for the others wait.
constexpr std::size_t kTurnBytes = 64 << 10;

}  // namespace

AsyncSocket::AsyncSocket(EventLoop& loop, tcp::socket socket)
    : loop_(loop), socket_(std::move(socket)) {}

void AsyncSocket::start(std::optional<tls::TlsStream> stream) {
  stream_ = std::move(stream);
  if (stream_) {
    on_readable();  // a client speaks first
  } else {
    is_open_ = true;
    on_open();
    wait_for_input();
  }
}

void AsyncSocket::write(std::string_view bytes) {
  output_ += bytes;
  send_soon();
}

void AsyncSocket::send_soon() {
  if (is_closed_ || output_.empty()) return;
  if (sent_ == 0 && progress_s_ == 0) progress_s_ = os::monotonic_now().value;
  if (is_in_turn_ || is_send_posted_ || is_waiting_output_ || !is_open_) return;
  is_send_posted_ = true;
  post([this] {
    is_send_posted_ = false;
    send_now();
  });
}

void AsyncSocket::resume_reading() {
  is_reading_ = true;
  if (is_in_turn_ || is_closed_) return;
  if (stream_ && stream_->has_pending())
    post([this] { on_readable(); });
  else
    wait_for_input();
}

void AsyncSocket::close_after_sending() {
  if (is_closed_ || is_closing_) return;
  is_closing_ = true;
  if (queued_bytes() > 0)
    send_soon();
  else if (!is_in_turn_)
    post([this] { send_now(); });
}

void AsyncSocket::close() {
  if (is_closed_) return;
  is_closed_ = true;
  boost::system::error_code ignored;
  if (stream_ && !is_ended_) stream_->end_writing();
  socket_.close(ignored);
  stream_.reset();
  output_ = std::string();
  sent_ = 0;
  on_closed();
}

void AsyncSocket::fail(std::string problem) {
  if (is_closed_) return;
  problem_ = std::move(problem);
  is_untrusted_ = stream_ && stream_->is_untrusted();
  // The stream has failed: nothing can be told to the peer.
  is_ended_ = true;
  close();
}

void AsyncSocket::check_progress(Seconds now, Seconds send_limit) {
  if (is_closed_ || progress_s_ == 0) return;
  const Seconds limit = is_ended_ ? kEndLimit : send_limit;
  if (limit.value > 0 && now.value - progress_s_ > limit.value)
    fail("the peer took nothing for " + format_seconds(limit));
}

void AsyncSocket::wait_for_input() {
  if (is_waiting_input_ || is_closed_ || (is_open_ && !is_reading_ && !is_ended_)) return;
  is_waiting_input_ = true;
  socket_.async_wait(tcp::socket::wait_read,
                     [self = shared_from_this()](const boost::system::error_code& error) {
                       self->is_waiting_input_ = false;
                       if (!error) self->on_readable();
                     });
}

void AsyncSocket::wait_for_output() {
  if (is_waiting_output_ || is_closed_) return;
  is_waiting_output_ = true;
  socket_.async_wait(tcp::socket::wait_write,
                     [self = shared_from_this()](const boost::system::error_code& error) {
                       self->is_waiting_output_ = false;
                       if (error || self->is_closed_) return;
                       if (std::exchange(self->is_read_blocked_, false)) self->on_readable();
                       self->send_now();
                     });
}

void AsyncSocket::on_readable() {
  if (is_closed_ || is_in_turn_) return;
  const auto self = shared_from_this();
  is_in_turn_ = true;
  is_drained_ = false;
  if (is_ended_)
    drop_input();
  else if (!is_open_)
    take_handshake();
  if (is_open_ && is_reading_ && !is_ended_) read_some();
  is_in_turn_ = false;
  send_now();
  if (is_closed_ || is_read_blocked_) return;
  if (is_open_ && is_reading_ && !is_ended_ && !is_drained_ && stream_ && stream_->has_pending())
    post([this] { on_readable(); });
  else
    wait_for_input();
}

void AsyncSocket::take_handshake() {
  switch (stream_->handshake()) {
    case StreamProgress::kDone:
      is_open_ = true;
      on_open();
      break;
    case StreamProgress::kWantRead:
      break;
    case StreamProgress::kWantWrite:
      is_read_blocked_ = true;
      wait_for_output();
      break;
    default:
      fail(stream_->problem());
  }
}

void AsyncSocket::read_some() {
  auto& scratch = loop_.impl().scratch;
  std::size_t left = kTurnBytes;
  do {
    const auto [progress, bytes] = read_once(scratch.data(), std::min(left, scratch.size()));
    switch (progress) {
      case StreamProgress::kDone:
        left -= bytes;
        on_input({scratch.data(), bytes});
        break;
      case StreamProgress::kWantRead:
        // Part of a record may be pending: the rest makes the socket readable.
        is_drained_ = true;
        return;
      case StreamProgress::kWantWrite:
        is_read_blocked_ = true;
        wait_for_output();
        return;
      case StreamProgress::kEnded:
        is_reading_ = false;
        on_end();
        return;
      case StreamProgress::kFailed:
        fail(stream_ ? stream_->problem() : os::errno_text());
        return;
    }
    // A socket without TLS that has more is readable again at once.
  } while (left > 0 && is_reading_ && !is_closed_ && !is_closing_ && stream_ &&
           stream_->has_pending());
}

void AsyncSocket::drop_input() {
  auto& scratch = loop_.impl().scratch;
  const ssize_t came =
      ::recv(socket_.native_handle(), scratch.data(), scratch.size(), MSG_DONTWAIT);
  if (came == 0 || (came < 0 && errno != EAGAIN && errno != EINTR)) close();
}

tls::StreamTransfer AsyncSocket::read_once(char* into, std::size_t count) {
  if (stream_) return stream_->read(into, count);
  const ssize_t came = ::recv(socket_.native_handle(), into, count, MSG_DONTWAIT);
  if (came > 0) return {StreamProgress::kDone, static_cast<std::size_t>(came)};
  if (came == 0) return {StreamProgress::kEnded, 0};
  const bool is_later = errno == EAGAIN || errno == EINTR;
  return {is_later ? StreamProgress::kWantRead : StreamProgress::kFailed, 0};
}

tls::StreamTransfer AsyncSocket::write_once(std::string_view bytes) {
  if (stream_) return stream_->write(bytes);
  const ssize_t sent =
      ::send(socket_.native_handle(), bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  if (sent >= 0) return {StreamProgress::kDone, static_cast<std::size_t>(sent)};
  const bool is_later = errno == EAGAIN || errno == EINTR;
  return {is_later ? StreamProgress::kWantWrite : StreamProgress::kFailed, 0};
}

void AsyncSocket::send_now() {
  if (is_closed_ || !is_open_ || is_waiting_output_ || is_ended_) return;
  if (output_.empty() && !is_closing_) return;
  const auto self = shared_from_this();
  while (sent_ < output_.size()) {
    const auto [progress, bytes] = write_once(std::string_view(output_).substr(sent_));
    if (progress == StreamProgress::kWantWrite) {
      wait_for_output();
      return;
    }
    if (progress != StreamProgress::kDone) {
      fail(stream_ ? stream_->problem() : os::errno_text());
      return;
    }
    sent_ += bytes;
    if (sent_ < output_.size()) progress_s_ = os::monotonic_now().value;
    if (sent_ > kCompactBytes && sent_ > output_.size() / 2) {
      output_.erase(0, sent_);
      sent_ = 0;
    }
  }
  output_ = std::string();
  sent_ = 0;
  progress_s_ = 0;
  if (is_closing_)
    end_output();
  else
    on_sent();
}

void AsyncSocket::end_output() {
  if (stream_) stream_->end_writing();
  boost::system::error_code ignored;
  socket_.shutdown(tcp::socket::shutdown_send, ignored);
  is_ended_ = true;
  progress_s_ = os::monotonic_now().value;
  wait_for_input();
}

}  // namespace regatta::http
