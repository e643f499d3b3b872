#include "regatta/base/http/internal/header_text.h"

#include <algorithm>
#include <array>
#include <ctime>

#include <boost/beast/http/status.hpp>
#include <fmt/format.h>

#include "regatta/base/core/text.h"

namespace regatta::http {
namespace {

char small_letter(char letter) {
  return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter - 'A' + 'a') : letter;
}

void append_header(std::string& out, std::string_view name, std::string_view value) {
  const auto append_safely = [&out](std::string_view text) {
    for (const char letter : text)
      out += static_cast<unsigned char>(letter) < ' ' || letter == 127 ? ' ' : letter;
  };
  append_safely(name);
  out += ": ";
  append_safely(value);
  out += "\r\n";
}

bool frames_message(std::string_view name) {
  constexpr std::array<std::string_view, 5> kNames = {"content-length", "transfer-encoding",
                                                      "connection", "content-type", "date"};
  return std::ranges::any_of(kNames,
                             [name](std::string_view own) { return is_same_token(name, own); });
}

}  // namespace

bool is_same_token(std::string_view one, std::string_view other) {
  return std::ranges::equal(one, other,
                            [](char a, char b) { return small_letter(a) == small_letter(b); });
}

bool has_token(std::string_view list, std::string_view token) {
  while (!list.empty()) {
    const std::size_t comma = std::min(list.find(','), list.size());
    if (is_same_token(trim(list.substr(0, comma)), token)) return true;
    list.remove_prefix(std::min(comma + 1, list.size()));
  }
  return false;
}

std::string_view reason_phrase(int status) {
  namespace beast_http = boost::beast::http;
  const auto known = beast_http::int_to_status(static_cast<unsigned>(status));
  if (known == beast_http::status::unknown) return "Unknown";
  const auto reason = beast_http::obsolete_reason(known);
  return {reason.data(), reason.size()};
}

void append_response_head(std::string& out, const Response& response, const ResponseHead& head) {
  out += "HTTP/1.1 ";
  out += std::to_string(response.status);
  out += ' ';
  out += reason_phrase(response.status);
  out += "\r\n";
  append_header(out, "Date", head.date);
  if (head.framing != BodyFraming::kNone && !response.content_type.empty())
    append_header(out, "Content-Type", response.content_type);
  if (head.framing == BodyFraming::kLength)
    append_header(out, "Content-Length", std::to_string(response.body.size()));
  if (head.framing == BodyFraming::kChunked) append_header(out, "Transfer-Encoding", "chunked");
  if (!head.keeps_connection) append_header(out, "Connection", "close");
  if (head.common != nullptr)
    for (const auto& [name, value] : *head.common)
      append_header(out, name, value);
  for (const auto& [name, value] : response.headers)
    if (!frames_message(name)) append_header(out, name, value);
  out += "\r\n";
}

void append_request(std::string& out, std::string_view method, std::string_view target,
                    const Headers& headers, std::string_view body) {
  out += method;
  out += ' ';
  out += target;
  out += " HTTP/1.1\r\n";
  for (const auto& [name, value] : headers)
    append_header(out, name, value);
  if (!body.empty() || method == "POST" || method == "PUT" || method == "PATCH")
    append_header(out, "Content-Length", std::to_string(body.size()));
  out += "\r\n";
  out += body;
}

void append_chunk(std::string& out, std::string_view bytes) {
  if (bytes.empty()) return;
  fmt::format_to(std::back_inserter(out), "{:x}\r\n", bytes.size());
  out += bytes;
  out += "\r\n";
}

std::string format_http_date(std::int64_t unix_seconds) {
  const std::time_t seconds = unix_seconds;
  std::tm parts{};
  ::gmtime_r(&seconds, &parts);
  // Not strftime(), whose names follow the locale.
  constexpr std::array<const char*, 7> kDays = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
  constexpr std::array<const char*, 12> kMonths = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                                   "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  return fmt::format("{}, {:02} {} {} {:02}:{:02}:{:02} GMT",
                     kDays[static_cast<std::size_t>(parts.tm_wday)], parts.tm_mday,
                     kMonths[static_cast<std::size_t>(parts.tm_mon)], parts.tm_year + 1900,
                     parts.tm_hour, parts.tm_min, parts.tm_sec);
}

Response problem_response(int status, std::string_view detail) {
  Response response{.status = status, .content_type = "application/problem+json"};
  response.body = fmt::format(R"({{"status":{},"title":"{}","detail":"{}"}})", status,
                              reason_phrase(status), detail);
  return response;
}

}  // namespace regatta::http
