// core/parse_number.h: numbers of texts that programs wrote: all of the text is the number, or it
// is none.
#pragma once

#include <charconv>
#include <optional>
#include <string_view>
#include <system_error>
#include <type_traits>

namespace regatta {

// Nothing where anything stands beside the number, or where it does not fit the type. Fractions may
// be "nan" or "inf"; `base` is of whole numbers.
template <typename Number>
std::optional<Number> parse_number(std::string_view text, [[maybe_unused]] int base = 10) {
  Number number{};
  const char* const end = text.data() + text.size();
  std::from_chars_result read{};
  if constexpr (std::is_floating_point_v<Number>)
    read = std::from_chars(text.data(), end, number);
  else
    read = std::from_chars(text.data(), end, number, base);
  if (read.ec != std::errc() || read.ptr != end) return std::nullopt;
  return number;
}

}  // namespace regatta
