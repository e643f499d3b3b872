// http/internal/request_target.h: the path and query of a request's target, decoded. Source: RFC
// 3986; the query as application/x-www-form-urlencoded (WHATWG URL). Pure.
#pragma once

#include <string_view>

#include "regatta/base/core/result.h"
#include "regatta/base/http/http_message.h"

namespace regatta::http {

// Fills `path` and `query` of `request` from "/path?query" or "http://host/path?query". Fails with
// kInvalidInput for another form, a wrong escape, an escaped control character, and a segment "."
// or "..", which a client resolves before it sends.
Status decode_target(std::string_view target, Request& request);

}  // namespace regatta::http
