// http/internal/server_exchange.h: what the handler of a server holds of a connection.
#pragma once

#include <memory>

#include "regatta/base/http/http_server.h"

namespace regatta::http {

class HttpConnection;

class ServerExchange final : public Exchange {
 public:
  ServerExchange(std::shared_ptr<HttpConnection> connection, Request request);
  ~ServerExchange() override;

  const Request& request() const override { return request_; }
  void respond(Response response) override;
  std::unique_ptr<ResponseStream> stream(Response head) override;
  Result<std::unique_ptr<WebSocket>> accept_web_socket() override;

 private:
  std::shared_ptr<HttpConnection> connection_;  // null when it was answered
  Request request_;
};

}  // namespace regatta::http
