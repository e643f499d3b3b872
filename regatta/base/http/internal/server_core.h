// http/internal/server_core.h: what the connections of one server share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>

#include "regatta/base/http/event_loop.h"
#include "regatta/base/http/http_server.h"
#include "regatta/base/tls/tls_stream.h"

namespace regatta::http {

class HttpConnection;

// Lives until the server and its last connection are gone.
struct ServerCore {
  ServerCore(EventLoop& its_loop, const ServerOptions& its_options, HttpServer::Handler its_handler)
      : loop(its_loop), options(its_options), handler(std::move(its_handler)) {}

  EventLoop& loop;
  const ServerOptions options;
  HttpServer::Handler handler;  // empty when the server is gone
  std::optional<tls::TlsContext> tls;
  std::unordered_set<HttpConnection*> connections;
  std::unordered_map<std::string, std::size_t> connections_by_address;
  std::size_t bodies_bytes = 0;  // received for requests that are not complete
  bool is_closing = false;       // responses end their connections

  // The value of the header Date, made anew each second.
  const std::string& date();

 private:
  std::int64_t date_second_ = 0;
  std::string date_;
};

}  // namespace regatta::http
