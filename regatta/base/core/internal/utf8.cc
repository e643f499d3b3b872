#include "regatta/base/core/internal/utf8.h"

namespace regatta {

std::size_t utf8_sequence_length(std::string_view text) {
  if (text.empty()) return 0;
  const auto byte = [text](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned first = byte(0);
  if (first < 0x80U) return 1;
  const std::size_t size = first < 0xC2U   ? 0
                           : first < 0xE0U ? 2
                           : first < 0xF0U ? 3
                           : first < 0xF5U ? 4
                                           : 0;
  if (size == 0 || text.size() < size) return 0;
  for (std::size_t i = 1; i < size; ++i)
    if ((byte(i) & 0xC0U) != 0x80U) return 0;
  // The shortest form alone, no halves of pairs, nothing beyond U+10FFFF.
  const unsigned second = byte(1);
  if ((first == 0xE0U && second < 0xA0U) || (first == 0xEDU && second > 0x9FU)) return 0;
  if ((first == 0xF0U && second < 0x90U) || (first == 0xF4U && second > 0x8FU)) return 0;
  return size;
}

std::size_t utf8_valid_prefix(std::string_view text) {
  std::size_t at = 0;
  while (const std::size_t size = utf8_sequence_length(text.substr(at)))
    at += size;
  return at;
}

}  // namespace regatta
