// http/internal/url.h: the address of a server as clients are given it. Pure.
#pragma once

#include <string>
#include <vector>

#include "regatta/base/core/result.h"
#include "regatta/base/http/http_client.h"
#include "regatta/base/http/http_message.h"
#include "regatta/base/os/socket.h"
#include "regatta/base/tls/tls_stream.h"

namespace regatta::http {

struct ServerUrl {
  bool is_tls = false;
  os::HostPort end;
  std::string authority;  // the value of the header Host
};

// "https://HOST[:PORT]" or "http://HOST[:PORT]", a trailing slash allowed. kInvalidInput for
// others.
Result<ServerUrl> parse_server_url(const std::string& url);

// Several, separated by commas, all with or all without TLS; at least one.
Result<std::vector<ServerUrl>> parse_server_urls(const std::string& urls);

// The server to which a response 307 to a request for `target` sends: its Location, absolute, with
// the same target. kInvalidInput where there is none or TLS would be given up.
Result<ServerUrl> redirected_server(const Response& response, const std::string& target,
                                    bool is_tls);

// The settings of TLS; kInvalidInput for https without a CA.
Result<tls::TlsContext> client_context(const ClientOptions& options);

// `headers` behind those that each request has.
Headers request_headers(const ServerUrl& url, const Headers& headers);

// Fails with kInvalidInput when a method, target or header would be read as more than it is.
Status check_request(const std::string& method, const std::string& target, const Headers& headers);

}  // namespace regatta::http
