// http/http_client.h: a client of HTTP/1.1 over TLS that waits for its answer.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "regatta/base/core/result.h"
#include "regatta/base/core/units.h"
#include "regatta/base/http/http_message.h"

namespace regatta::http {

// The server and how it is known: `ca` is the PEM text of the one CA that is trusted; the client's
// own certificate is optional. Https without `ca` and `ca_hash` is refused: nothing is trusted
// blindly.
struct ClientOptions {
  // https://HOST:PORT or http://HOST:PORT. HttpClient takes several, separated by commas, that
  // serve the same thing: the next one is tried where one cannot be reached.
  std::string url;
  std::string ca;
  // Instead of `ca`, for the request by which a server joins: certificate_hash() of the CA, which
  // the server sends in its chain.
  std::string ca_hash;
  std::string certificate_chain;
  std::string private_key;
  Seconds connect_limit{5};
  Seconds response_limit{30};  // without a byte; 0: none
};

class HttpClient {
 public:
  // kInvalidInput for a URL, CA or certificate that cannot be used. Connects with the first
  // request.
  static Result<HttpClient> create(ClientOptions options);
  HttpClient(HttpClient&&) noexcept;
  HttpClient& operator=(HttpClient&&) noexcept;
  ~HttpClient();

  // Keeps the connection for the next request. A kept connection that the server has closed is
  // replaced; where that shows only after the request was sent, a GET is sent again once.
  // A server that answers 307 names another one (Location), which gets this request and the next
  // ones; from https only to https with the same trust. With several servers a request that none of
  // them takes is tried for `connect_limit`; one whose answer is lost is sent again where it is a
  // GET or carries an Idempotency-Key.
  // kUnavailable when no server can be reached or it ends early, kTimeout, kInvalidInput for a
  // request that is not well formed or a certificate that is not trusted. A response has at most
  // 256 MiB.
  Result<Response> send(const std::string& method, const std::string& target,
                        const Headers& headers = {}, std::string_view body = {});
  // Gives the pieces of the body as they come; ends when `piece` returns false or the body ends.
  // The returned response has no body, unless its status is 300 or more: then all of the body is
  // there, and `piece` gets nothing.
  Result<Response> stream(const std::string& method, const std::string& target,
                          const Headers& headers,
                          const std::function<bool(std::string_view)>& piece);

 private:
  struct Impl;
  explicit HttpClient(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace regatta::http
