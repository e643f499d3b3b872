// login/internal/browser_request.h: what a browser says of a request: its cookies, and whether a
// page of ours sent it. Sources: RFC 6265; W3C Fetch Metadata. Pure.
#pragma once

#include <string>
#include <string_view>

#include "regatta/base/core/units.h"
#include "regatta/base/http/http_message.h"

namespace regatta::login {

// Browsers take a cookie of this prefix over TLS alone, for this host and all its paths.
inline constexpr std::string_view kSessionCookie = "__Host-regatta";

// The value of the cookie `name` in a header Cookie; empty where there is none, or two, of which
// one may be planted.
std::string_view find_cookie(std::string_view header, std::string_view name);

// The value of Set-Cookie: no script reads it, and no page of another site sends it. `lifetime` 0:
// the browser forgets it.
std::string session_cookie(std::string_view secret, Seconds lifetime);

enum class RequestSite {
  kOwn,      // a page of this origin, or an address that a person has typed
  kForeign,  // a page of another origin: another port of the same host too
  kUnknown   // no browser of today; a program
};
// By Sec-Fetch-Site; where that is missing by Origin, which has to be https:// and the header Host.
RequestSite site_of(const http::Request& request);

}  // namespace regatta::login
