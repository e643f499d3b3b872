// api/problem.h: errors as responses. Source: RFC 9457 (problem details), with `reason` and `hint`.
#pragma once

#include <string>
#include <string_view>

#include "regatta/base/core/result.h"
#include "regatta/base/core/units.h"
#include "regatta/base/http/http_message.h"

namespace regatta::api {

// The status of an error by its code: 400 kInvalidInput, 404 kNotFound, 409 kConflict, 429
// kExhausted, 503 kUnavailable, 504 kTimeout, 501 kUnsupported.
int http_status(Code code);

// `hint` is what follows the first semicolon of the message. 429 and 503 say when to try again.
http::Response problem(int status, std::string_view reason, std::string_view message);
http::Response problem(const Error& error);

// 429 with the time until a repeated request may be taken.
http::Response too_many(std::string_view reason, std::string_view message, Seconds wait);

}  // namespace regatta::api
