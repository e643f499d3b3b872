#include "regatta/base/http/internal/web_socket_session.h"

#include <utility>

#include "regatta/base/os/clock.h"

namespace regatta::http {
namespace {

class WebSocketHandle final : public WebSocket {
 public:
  explicit WebSocketHandle(std::shared_ptr<WebSocketSession> session)
      : session_(std::move(session)) {}
  ~WebSocketHandle() override { session_->release(); }

  bool send(std::string_view message) override { return session_->send(message); }
  void on_message(std::function<void(std::string_view)> handler) override {
    session_->set_on_message(std::move(handler));
  }
  void on_closed(std::function<void()> handler) override {
    session_->set_on_closed(std::move(handler));
  }

 private:
  std::shared_ptr<WebSocketSession> session_;
};

}  // namespace

WebSocketSession::WebSocketSession(AsyncSocket& socket, WebSocketRole role,
                                   const WebSocketLimits& limits)
    : socket_(&socket),
      role_(role),
      limits_(limits),
      heard_s_(os::monotonic_now().value),
      reader_(role == WebSocketRole::kServer ? WebSocketRole::kClient : WebSocketRole::kServer,
              limits.message_bytes_max) {}

std::unique_ptr<WebSocket> WebSocketSession::handle() {
  return std::make_unique<WebSocketHandle>(shared_from_this());
}

void WebSocketSession::on_input(std::string_view bytes) {
  heard_s_ = os::monotonic_now().value;
  is_pinged_ = false;
  if (on_message_ == nullptr && !is_released_) {
    backlog_ += bytes;
    socket_->pause_reading();
  } else {
    take_frames(bytes);
  }
}

void WebSocketSession::take_frames(std::string_view bytes) {
  using Event = FrameReader::Event;
  const auto self = shared_from_this();
  while (socket_ != nullptr && !is_ended_) {
    switch (reader_.next(bytes)) {
      case Event::kNeedsMore:
        return;
      case Event::kMessage:
        if (const auto handler = on_message_; handler != nullptr) (*handler)(reader_.payload());
        break;
      case Event::kPing:
        append_frame(socket_->output(), role_, FrameOpcode::kPong, reader_.payload());
        socket_->send_soon();
        // A peer that sends pings and reads nothing is treated as one that reads no messages.
        if (socket_->queued_bytes() > limits_.queued_bytes_max) end(kCloseProtocol);
        break;
      case Event::kPong:
        break;
      case Event::kClose:
        end(kCloseNormal);
        break;
      case Event::kError:
        end(reader_.error_status());
        break;
    }
  }
}

void WebSocketSession::end(std::uint16_t status) {
  if (socket_ == nullptr || is_ended_) return;
  is_ended_ = true;
  append_close_frame(socket_->output(), role_, status);
  socket_->close_after_sending();
  report_closed();
}

void WebSocketSession::report_closed() {
  if (is_reported_ || is_released_ || on_closed_ == nullptr) return;
  is_reported_ = true;
  const auto handler = on_closed_;
  (*handler)();
}

void WebSocketSession::on_socket_closed() {
  socket_ = nullptr;
  report_closed();
}

void WebSocketSession::check_silence(Seconds now) {
  if (socket_ == nullptr || is_ended_ || limits_.silence_max.value <= 0) return;
  const double silence_s = now.value - heard_s_;
  if (silence_s > limits_.silence_max.value) {
    socket_->close();
  } else if (silence_s > limits_.silence_max.value / 2 && !is_pinged_) {
    is_pinged_ = true;
    append_frame(socket_->output(), role_, FrameOpcode::kPing, {});
    socket_->send_soon();
  }
}

bool WebSocketSession::send(std::string_view message) {
  if (socket_ == nullptr || is_ended_ || is_released_) return false;
  if (socket_->queued_bytes() + message.size() > limits_.queued_bytes_max) {
    is_ended_ = true;
    socket_->post([socket = socket_] { socket->close(); });
    return false;
  }
  append_frame(socket_->output(), role_, FrameOpcode::kBinary, message);
  socket_->send_soon();
  return true;
}

void WebSocketSession::set_on_message(std::function<void(std::string_view)> handler) {
  on_message_ = std::make_shared<std::function<void(std::string_view)>>(std::move(handler));
  if (socket_ == nullptr || backlog_.empty()) return;
  socket_->post([self = shared_from_this()] {
    const std::string bytes = std::exchange(self->backlog_, {});
    self->take_frames(bytes);
    if (self->socket_ != nullptr) self->socket_->resume_reading();
  });
}

void WebSocketSession::set_on_closed(std::function<void()> handler) {
  on_closed_ = std::make_shared<std::function<void()>>(std::move(handler));
  const bool is_gone = socket_ == nullptr || is_ended_;
  if (is_gone) report_closed();
}

void WebSocketSession::release() {
  is_released_ = true;
  on_message_.reset();
  on_closed_.reset();
  end(kCloseNormal);
}

}  // namespace regatta::http
