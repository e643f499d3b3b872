// http/internal/http_connection.h: a server's end of one HTTP/1.1 connection: requests in, one
// after another, responses out in their order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "regatta/base/core/result.h"
#include "regatta/base/http/http_server.h"
#include "regatta/base/http/internal/async_socket.h"
#include "regatta/base/http/internal/message_parser.h"
#include "regatta/base/http/internal/server_core.h"
#include "regatta/base/http/internal/web_socket_session.h"

namespace regatta::http {

class HttpConnection final : public AsyncSocket {
 public:
  // `is_refused`: one too many; its first request is answered by 503.
  HttpConnection(std::shared_ptr<ServerCore> core, boost::asio::ip::tcp::socket socket,
                 std::string remote_address, bool is_refused);
  ~HttpConnection() override;

  void begin();
  void check_limits(Seconds now);
  // Ends a connection between two requests.
  void close_if_idle();

  // From the exchange that is open.
  void respond(const Response& response);
  void begin_stream(const Response& head);
  std::shared_ptr<WebSocketSession> begin_web_socket(const Request& request);

  // From the stream that is open.
  bool send_piece(std::string_view bytes);
  void set_on_stream_closed(std::function<void()> handler);
  void end_stream();

 private:
  enum class Stage : std::uint8_t { kIdle, kRequest, kExchange, kStream, kWebSocket, kEnded };

  void on_open() override;
  void on_input(std::string_view bytes) override;
  void on_sent() override;
  void on_end() override;
  void on_closed() override;

  void go_on();
  void go_on_later();
  std::size_t take_requests(std::string_view bytes);
  bool take_request(std::string_view& bytes);
  void begin_exchange();
  void count_body();
  void drop_parser();
  void refuse(int status, std::string_view problem);
  void report_stream_closed();

  const std::shared_ptr<ServerCore> core_;
  const std::string remote_address_;
  std::vector<std::string> peer_uris_;
  std::string input_;  // part of a request, or requests that wait for their turn
  std::unique_ptr<RequestParser> parser_;
  std::shared_ptr<WebSocketSession> session_;
  std::function<void()> on_stream_closed_;
  std::size_t counted_bytes_ = 0;  // of the parser's body, in the server's sum
  double since_s_;                 // of the stage kIdle or kRequest, or of the beginning
  Stage stage_ = Stage::kIdle;
  bool is_refused_;
  bool is_counted_ = true;
  bool is_in_handler_ = false;
  bool is_continue_sent_ = false;
  bool is_head_ = false;
  bool is_http_1_0_ = false;
  bool keeps_ = true;
  bool has_peer_ended_ = false;
};

}  // namespace regatta::http
