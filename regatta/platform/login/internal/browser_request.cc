#include "regatta/platform/login/internal/browser_request.h"

#include <algorithm>

#include <fmt/format.h>

#include "regatta/base/core/text.h"

namespace regatta::login {

std::string_view find_cookie(std::string_view header, std::string_view name) {
  std::string_view value;
  bool is_found = false;
  while (!header.empty()) {
    const std::size_t end = std::min(header.find(';'), header.size());
    const std::string_view pair = trim(header.substr(0, end));
    header.remove_prefix(std::min(end + 1, header.size()));
    const std::size_t equals = pair.find('=');
    if (equals == std::string_view::npos || pair.substr(0, equals) != name) continue;
    if (is_found) return "";
    is_found = true;
    value = pair.substr(equals + 1);
  }
  return value;
}

std::string session_cookie(std::string_view secret, Seconds lifetime) {
  return fmt::format("{}={}; Path=/; Secure; HttpOnly; SameSite=Strict; Max-Age={}", kSessionCookie,
                     secret, static_cast<long long>(lifetime.value));
}

RequestSite site_of(const http::Request& request) {
  if (const std::string_view site = request.header("Sec-Fetch-Site"); !site.empty())
    return site == "same-origin" || site == "none" ? RequestSite::kOwn : RequestSite::kForeign;
  const std::string_view origin = request.header("Origin");
  if (origin.empty()) return RequestSite::kUnknown;
  constexpr std::string_view kScheme = "https://";
  const bool is_own =
      origin.starts_with(kScheme) && origin.substr(kScheme.size()) == request.header("Host");
  return is_own ? RequestSite::kOwn : RequestSite::kForeign;
}

}  // namespace regatta::login
