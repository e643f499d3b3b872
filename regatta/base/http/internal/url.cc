#include "regatta/base/http/internal/url.h"

#include <algorithm>
#include <string_view>

#include "regatta/base/core/text.h"

namespace regatta::http {
namespace {

bool is_visible(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](unsigned char letter) {
    return letter > ' ' && letter < 127;
  });
}

}  // namespace

Result<ServerUrl> parse_server_url(const std::string& url) {
  const Error error{Code::kInvalidInput, "'" + printable(url, 80) +
                                             "' is no URL of a server, such as https://HOST:PORT"};
  std::string_view rest = url;
  ServerUrl result;
  if (rest.starts_with("https://"))
    result.is_tls = true;
  else if (!rest.starts_with("http://"))
    return error;
  rest.remove_prefix(rest.find("//") + 2);
  if (rest.ends_with('/')) rest.remove_suffix(1);
  if (!is_visible(rest) || rest.find_first_of("/?#@") != std::string_view::npos) return error;
  result.authority = std::string(rest);
  const std::size_t colon = rest.rfind(':');
  const bool has_port =
      colon != std::string_view::npos && rest.find(']', colon) == std::string_view::npos;
  const std::string with_port =
      has_port ? std::string(rest) : std::string(rest) + (result.is_tls ? ":443" : ":80");
  const auto end = os::parse_host_port(with_port);
  if (!end || end->host.empty()) return error;
  result.end = *end;
  return result;
}

Result<std::vector<ServerUrl>> parse_server_urls(const std::string& urls) {
  std::vector<ServerUrl> servers;
  for (const std::string& url : split(urls, ',')) {
    REGATTA_TRY(server, parse_server_url(url));
    servers.push_back(std::move(server));
    if (servers.back().is_tls != servers.front().is_tls)
      return Error{Code::kInvalidInput,
                   "'" + printable(urls, 80) + "' mixes https and http; give one of them"};
  }
  return servers;
}

Result<ServerUrl> redirected_server(const Response& response, const std::string& target,
                                    bool is_tls) {
  std::string_view location = find_header(response.headers, "Location");
  if (location.ends_with(target)) location.remove_suffix(target.size());
  REGATTA_TRY(server, parse_server_url(std::string(location)));
  if (server.is_tls != is_tls)
    return Error{Code::kInvalidInput, "the server sends from https to http, which is not followed"};
  return server;
}

Result<tls::TlsContext> client_context(const ClientOptions& options) {
  if (!options.ca_hash.empty()) return tls::TlsContext::client_of_hash(options.ca_hash);
  if (options.ca.empty())
    return Error{Code::kInvalidInput,
                 options.url + ": no trusted CA is given; no server is trusted without one"};
  return tls::TlsContext::client(options.ca, {options.certificate_chain, options.private_key});
}

Headers request_headers(const ServerUrl& url, const Headers& headers) {
  Headers all = {{"Host", url.authority}};
  all.insert(all.end(), headers.begin(), headers.end());
  return all;
}

Status check_request(const std::string& method, const std::string& target, const Headers& headers) {
  if (!is_visible(method) || !is_visible(target) || !target.starts_with('/'))
    return Error{Code::kInvalidInput, "'" + printable(method + " " + target, 80) +
                                          "' is no request; give a method and /path?name=value"};
  for (const auto& [name, value] : headers)
    if (!is_visible(name) || value.find_first_of("\r\n") != std::string::npos)
      return Error{Code::kInvalidInput, "the header '" + printable(name, 40) + "' cannot be sent"};
  return {};
}

}  // namespace regatta::http
