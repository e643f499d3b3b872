#include "regatta/base/http/http_message.h"

#include <algorithm>
#include <cstdint>

#include "regatta/base/http/internal/header_text.h"

namespace regatta::http {

std::string_view find_header(const Headers& headers, std::string_view name) {
  const auto found = std::ranges::find_if(
      headers, [name](const auto& header) { return is_same_token(header.first, name); });
  return found == headers.end() ? std::string_view() : std::string_view(found->second);
}

std::string_view Request::query_value(std::string_view key) const {
  const auto found =
      std::ranges::find_if(query, [key](const auto& one) { return one.first == key; });
  return found == query.end() ? std::string_view() : std::string_view(found->second);
}

std::string base64(std::string_view bytes) {
  constexpr std::string_view kLetters =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    std::uint32_t group = 0;
    const std::size_t count = std::min<std::size_t>(3, bytes.size() - i);
    for (std::size_t k = 0; k < 3; ++k)
      group = group << 8 | (k < count ? static_cast<unsigned char>(bytes[i + k]) : 0U);
    for (std::size_t k = 0; k < 4; ++k)
      text += k <= count ? kLetters[group >> (18 - 6 * k) & 63] : '=';
  }
  return text;
}

}  // namespace regatta::http
