// http/http_server.h: an asynchronous HTTP/1.1 server with TLS, streams of events and WebSockets.
// No client can make it exceed its bounds or delay the others.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "regatta/base/core/result.h"
#include "regatta/base/core/units.h"
#include "regatta/base/http/event_loop.h"
#include "regatta/base/http/http_message.h"

namespace regatta::http {

// A response whose body has no end yet: server-sent events or lines of JSON. Owned by the handler;
// the connection closes when it is destroyed.
class ResponseStream {
 public:
  virtual ~ResponseStream() = default;
  // Queues bytes; never waits. False when the client is gone or more than the queue's bound waits:
  // then the connection is closed.
  virtual bool send(std::string_view bytes) = 0;
  virtual std::size_t queued_bytes() const = 0;
  // Called once when the client goes first or is dropped; not after destruction.
  virtual void on_closed(std::function<void()> handler) = 0;
};

// Messages of binary frames in both directions (RFC 6455). Owned by the handler; closes when it is
// destroyed, after what was sent. A peer that is silent for half of the idle limit gets a ping, one
// that is silent for all of it is dropped.
class WebSocket {
 public:
  virtual ~WebSocket() = default;
  virtual bool send(std::string_view message) = 0;  // as ResponseStream::send()
  // Messages that came before wait for the handler.
  virtual void on_message(std::function<void(std::string_view)> handler) = 0;
  virtual void on_closed(std::function<void()> handler) = 0;
};

// One request whose response is still due. Exactly one of respond(), stream() and
// accept_web_socket() is called, in the loop's thread, at once or later; one that is destroyed
// without answers 500. The next request of the connection waits until then.
class Exchange {
 public:
  virtual ~Exchange() = default;
  virtual const Request& request() const = 0;
  // To HEAD without the body. The server adds Date, Content-Length and Connection.
  virtual void respond(Response response) = 0;
  // Sends status and headers, the body of `head` as the first piece, then what send() gets, each
  // piece as one chunk.
  virtual std::unique_ptr<ResponseStream> stream(Response head) = 0;
  // kInvalidInput when the request asks for no upgrade; then the exchange is still open.
  virtual Result<std::unique_ptr<WebSocket>> accept_web_socket() = 0;
};

struct ServerOptions {
  std::string address = "127.0.0.1";
  std::uint16_t port = 0;  // 0: the system chooses
  // One more is answered 503 and closed.
  std::size_t connections_max = 20000;
  std::size_t connections_per_address_max = 20000;
  std::size_t header_bytes_max = 16384;
  std::size_t body_bytes_max = 5 << 20;
  // Bodies that are under way on all connections together; the one that exceeds it is answered 503.
  std::size_t bodies_bytes_max = 256 << 20;
  std::size_t queued_bytes_max = 1 << 20;   // of one stream or WebSocket
  std::size_t message_bytes_max = 1 << 20;  // of a WebSocket
  Seconds request_limit{10};                // from a request's first byte to its last
  Seconds idle_limit{60};                   // of a connection between two requests
  Seconds send_limit{30};                   // without progress while bytes wait
  Headers headers = {};                     // that every response has besides its own
};

// PEM texts of the server. A client's certificate is asked for, not demanded; one that `client_ca`
// did not sign ends the handshake.
struct ServerIdentity {
  std::string certificate_chain;
  std::string private_key;
  std::string client_ca;  // empty: none is asked for
};

class HttpServer {
 public:
  using Handler = std::function<void(std::unique_ptr<Exchange>)>;

  // Listens at once; serves while `loop` runs. kConflict when the port is in use, kInvalidInput for
  // an unusable certificate. `identity` without a certificate: plain HTTP, for loopback alone. The
  // server is not destroyed within its handler.
  static Result<std::unique_ptr<HttpServer>> listen(EventLoop& loop, const ServerOptions& options,
                                                    const ServerIdentity& identity,
                                                    Handler handler);
  virtual ~HttpServer() = default;
  virtual std::uint16_t port() const = 0;
  // New handshakes use it; connections stay.
  virtual Status set_identity(const ServerIdentity& identity) = 0;
  // Accepts nobody any more and ends connections without a request; open exchanges are answered,
  // streams and WebSockets stay.
  virtual void close_listener() = 0;
  virtual std::size_t connection_count() const = 0;
};

}  // namespace regatta::http
