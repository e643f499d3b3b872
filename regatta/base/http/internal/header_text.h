// http/internal/header_text.h: heads of HTTP/1.1 messages as text. Source: RFC 9110, RFC 9112.
// Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "regatta/base/http/http_message.h"

namespace regatta::http {

// Compares without regard to the case of ASCII letters.
bool is_same_token(std::string_view one, std::string_view other);
// Whether `token` is in a list that commas separate.
bool has_token(std::string_view list, std::string_view token);

// "Not Found"; "Unknown" for a number without one.
std::string_view reason_phrase(int status);

// How the end of a body is known.
enum class BodyFraming : std::uint8_t { kLength, kChunked, kUntilClose, kNone };

struct ResponseHead {
  BodyFraming framing = BodyFraming::kLength;
  bool keeps_connection = true;
  std::string_view date;            // IMF-fixdate
  const Headers* common = nullptr;  // headers that every response of the server has
};

// Appends the status line and the headers. Characters that could end a header are written as
// spaces; headers that say where the message ends are left to `head`.
void append_response_head(std::string& out, const Response& response, const ResponseHead& head);
void append_request(std::string& out, std::string_view method, std::string_view target,
                    const Headers& headers, std::string_view body);
// One chunk of a chunked body; nothing for no bytes, which would end it.
void append_chunk(std::string& out, std::string_view bytes);
inline constexpr std::string_view kLastChunk = "0\r\n\r\n";

// "Sat, 28 Nov 2026 00:41:05 GMT".
std::string format_http_date(std::int64_t unix_seconds);

// A response of the server's own about a request that it does not hand over (RFC 9457).
Response problem_response(int status, std::string_view detail);

}  // namespace regatta::http
