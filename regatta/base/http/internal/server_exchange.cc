#include "regatta/base/http/internal/server_exchange.h"

#include <utility>

#include "regatta/base/http/internal/header_text.h"
#include "regatta/base/http/internal/http_connection.h"
#include "regatta/base/http/internal/web_socket_frames.h"

namespace regatta::http {
namespace {

class ConnectionStream final : public ResponseStream {
 public:
  explicit ConnectionStream(std::shared_ptr<HttpConnection> connection)
      : connection_(std::move(connection)) {}
  ~ConnectionStream() override { connection_->end_stream(); }

  bool send(std::string_view bytes) override { return connection_->send_piece(bytes); }
  std::size_t queued_bytes() const override { return connection_->queued_bytes(); }
  void on_closed(std::function<void()> handler) override {
    connection_->set_on_stream_closed(std::move(handler));
  }

 private:
  std::shared_ptr<HttpConnection> connection_;
};

}  // namespace

ServerExchange::ServerExchange(std::shared_ptr<HttpConnection> connection, Request request)
    : connection_(std::move(connection)), request_(std::move(request)) {}

ServerExchange::~ServerExchange() {
  if (connection_ != nullptr)
    connection_->respond(problem_response(500, "the server gave no answer to the request"));
}

void ServerExchange::respond(Response response) {
  REGATTA_CHECK(connection_ != nullptr);
  std::exchange(connection_, nullptr)->respond(response);
}

std::unique_ptr<ResponseStream> ServerExchange::stream(Response head) {
  REGATTA_CHECK(connection_ != nullptr);
  connection_->begin_stream(head);
  auto stream = std::make_unique<ConnectionStream>(std::exchange(connection_, nullptr));
  if (!head.body.empty()) stream->send(head.body);
  return stream;
}

Result<std::unique_ptr<WebSocket>> ServerExchange::accept_web_socket() {
  REGATTA_CHECK(connection_ != nullptr);
  if (!asks_for_web_socket(request_))
    return Error{Code::kInvalidInput, "the request asks for no WebSocket of version 13"};
  const auto session = std::exchange(connection_, nullptr)->begin_web_socket(request_);
  return session->handle();
}

}  // namespace regatta::http
