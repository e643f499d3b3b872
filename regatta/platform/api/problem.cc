#include "regatta/platform/api/problem.h"

#include <cmath>
#include <string>

#include <fmt/format.h>

#include "regatta/base/core/text.h"
#include "regatta/platform/api/internal/json_object.h"

namespace regatta::api {
namespace {

std::string_view title_of(int status) {
  switch (status) {
    case 400:
      return "invalid input";
    case 401:
      return "not authenticated";
    case 403:
      return "not allowed";
    case 404:
      return "not found";
    case 405:
      return "method not allowed";
    case 409:
      return "conflict";
    case 410:
      return "gone";
    case 412:
      return "precondition failed";
    case 428:
      return "precondition required";
    case 429:
      return "too many";
    case 501:
      return "not supported";
    case 503:
      return "unavailable";
    case 504:
      return "timeout";
    case 507:
      return "insufficient storage";
    default:
      return "error";
  }
}

std::string_view reason_of(Code code) {
  switch (code) {
    case Code::kInvalidInput:
      return "InvalidInput";
    case Code::kNotFound:
      return "NotFound";
    case Code::kConflict:
      return "Conflict";
    case Code::kExhausted:
      return "Exhausted";
    case Code::kUnavailable:
      return "Unavailable";
    case Code::kTimeout:
      return "Timeout";
    case Code::kUnsupported:
      return "Unsupported";
  }
  return "Unavailable";
}

}  // namespace

int http_status(Code code) {
  switch (code) {
    case Code::kInvalidInput:
      return 400;
    case Code::kNotFound:
      return 404;
    case Code::kConflict:
      return 409;
    case Code::kExhausted:
      return 429;
    case Code::kUnavailable:
      return 503;
    case Code::kTimeout:
      return 504;
    case Code::kUnsupported:
      return 501;
  }
  return 500;
}

http::Response problem(int status, std::string_view reason, std::string_view message) {
  const std::size_t semicolon = message.find("; ");
  JsonObject object;
  object.add("type", "about:blank");
  object.add("title", title_of(status));
  object.add("status", status);
  object.add("detail", message);
  object.add("reason", reason);
  if (semicolon != std::string_view::npos) object.add("hint", message.substr(semicolon + 2));
  http::Response response;
  response.status = status;
  response.content_type = "application/problem+json";
  response.body = object.take();
  if (status == 429 || status == 503) response.headers.emplace_back("Retry-After", "1");
  return response;
}

http::Response too_many(std::string_view reason, std::string_view message, Seconds wait) {
  const auto seconds = static_cast<long long>(std::ceil(wait.value));
  http::Response response =
      problem(429, reason, fmt::format("{}; try again in {} s", message, seconds));
  for (auto& [name, value] : response.headers)
    if (name == "Retry-After") value = std::to_string(seconds);
  return response;
}

http::Response problem(const Error& error) {
  return problem(http_status(error.code), reason_of(error.code), error.message);
}

}  // namespace regatta::api
