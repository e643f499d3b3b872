// experimental/remote/internal/hexadecimal.h: bytes as text.
#pragma once

#include <string>
#include <string_view>

namespace regatta::remote {

// Two digits a byte, with small letters.
inline std::string hexadecimal(std::string_view bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  for (const char byte : bytes) {
    text += kDigits[static_cast<unsigned char>(byte) >> 4];
    text += kDigits[static_cast<unsigned char>(byte) & 15];
  }
  return text;
}

}  // namespace regatta::remote
