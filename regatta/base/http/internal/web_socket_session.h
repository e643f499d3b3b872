// http/internal/web_socket_session.h: one open WebSocket over a connection of a loop, at either
// end.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "regatta/base/core/units.h"
#include "regatta/base/http/http_server.h"
#include "regatta/base/http/internal/async_socket.h"
#include "regatta/base/http/internal/web_socket_frames.h"

namespace regatta::http {

struct WebSocketLimits {
  std::size_t message_bytes_max = 1 << 20;
  std::size_t queued_bytes_max = 1 << 20;
  Seconds silence_max{60};  // a peer that is silent for half of it gets a ping; 0: no limit
};

// Shared by the connection, which gives it the input, and by the owner's handle.
class WebSocketSession : public std::enable_shared_from_this<WebSocketSession> {
 public:
  WebSocketSession(AsyncSocket& socket, WebSocketRole role, const WebSocketLimits& limits);
  // The owner's end; the WebSocket closes when it is destroyed.
  std::unique_ptr<WebSocket> handle();

  // From the connection.
  void on_input(std::string_view bytes);
  void on_socket_closed();
  void check_silence(Seconds now);

  // From the owner.
  bool send(std::string_view message);
  void set_on_message(std::function<void(std::string_view)> handler);
  void set_on_closed(std::function<void()> handler);
  void release();

 private:
  void take_frames(std::string_view bytes);
  void end(std::uint16_t status);
  void report_closed();

  AsyncSocket* socket_;  // null when it is closed
  WebSocketRole role_;
  bool is_released_ = false;
  bool is_ended_ = false;  // a close frame was sent
  bool is_reported_ = false;
  bool is_pinged_ = false;
  WebSocketLimits limits_;
  double heard_s_;
  FrameReader reader_;
  std::string backlog_;  // came before there was a handler
  // Shared, for a handler may replace or end itself.
  std::shared_ptr<std::function<void(std::string_view)>> on_message_;
  std::shared_ptr<std::function<void()>> on_closed_;
};

}  // namespace regatta::http
