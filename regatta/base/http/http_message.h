// http/http_message.h: requests and responses of HTTP/1.1 as values.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace regatta::http {

using Headers = std::vector<std::pair<std::string, std::string>>;

// The value of a header by its name without regard to case; empty: it is missing.
std::string_view find_header(const Headers& headers, std::string_view name);

struct Request {
  std::string method;  // GET, POST, ...
  std::string target;  // as it was sent: path and query
  std::string path;    // decoded, begins with '/', has no segments "." and ".."
  std::vector<std::pair<std::string, std::string>> query;  // decoded, in their order
  Headers headers;
  std::string body;
  std::string remote_address;  // without the port
  // URIs of the subject's alternative names of the client's certificate, where TLS verified one.
  std::vector<std::string> peer_uris;

  std::string_view header(std::string_view name) const { return find_header(headers, name); }
  // The first value of this key of the query; empty: it is missing.
  std::string_view query_value(std::string_view key) const;
};

struct Response {
  int status = 200;
  std::string content_type = "application/json";
  Headers headers;
  std::string body;
};

// The bytes in base64 with padding. Source: RFC 4648, section 4.
std::string base64(std::string_view bytes);

}  // namespace regatta::http
