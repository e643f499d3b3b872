// http/internal/message_parser.h: requests and responses out of bytes as they come, by
// Boost.Beast's parser. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "regatta/base/core/result.h"
#include "regatta/base/http/http_message.h"

namespace regatta::http {

struct ParserLimits {
  std::size_t header_bytes_max = 16384;
  std::size_t body_bytes_max = 5 << 20;
};

enum class ParseState : std::uint8_t { kNeedsMore, kComplete, kFailed };

// One request. The caller gives the bytes that put() left again, with more behind them.
class RequestParser {
 public:
  explicit RequestParser(ParserLimits limits);
  ~RequestParser();
  RequestParser(const RequestParser&) = delete;
  RequestParser& operator=(const RequestParser&) = delete;

  // Returns how many bytes it took; those behind a complete request stay.
  std::size_t put(std::string_view bytes);
  ParseState state() const;
  bool is_header_done() const;
  // Received so far.
  std::size_t body_bytes() const;
  // The client waits for "100 Continue" before it sends the body.
  bool expects_continue() const;
  // The connection goes on after the response (RFC 9112, section 9.3).
  bool keeps_connection() const;
  bool is_http_1_0() const;
  // The status to answer a failed request with, and a sentence without quotation marks.
  int error_status() const;
  std::string_view problem() const;
  // For a complete request.
  Request take();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// One response. Interim responses (100) are skipped.
class ResponseParser {
 public:
  // Gets the pieces of the body; returns false to end. Without one the body is kept, and that of a
  // status from 300 on in any case: it tells what is wrong.
  using Piece = std::function<bool(std::string_view)>;
  ResponseParser(bool is_head, ParserLimits limits, Piece piece = {});
  ~ResponseParser();
  ResponseParser(const ResponseParser&) = delete;
  ResponseParser& operator=(const ResponseParser&) = delete;

  std::size_t put(std::string_view bytes);
  // No more bytes come: completes a body that lasts until then, else fails.
  void put_end();
  ParseState state() const;
  // put() got a byte.
  bool has_begun() const;
  // `piece` ended it.
  bool is_ended_by_owner() const;
  bool keeps_connection() const;
  std::string_view problem() const;
  Response take();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace regatta::http
