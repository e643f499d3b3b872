#include "regatta/base/http/http_message.h"

#include <algorithm>

#include "regatta/base/http/internal/header_text.h"

namespace regatta::http {

std::string_view find_header(const Headers& headers, std::string_view name) {
  const auto found = std::ranges::find_if(
      headers, [name](const auto& header) { return is_same_token(header.first, name); });
  return found == headers.end() ? std::string_view() : std::string_view(found->second);
}

}  // namespace regatta::http
