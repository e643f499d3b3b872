// core/enum_names.h: the words that files and messages use for an enumeration, and the way back.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace regatta {

// By the value of the enumerator, which counts from 0.
template <std::size_t kCount>
using EnumNames = std::array<const char*, kCount>;

template <typename Enum, std::size_t kCount>
std::string enum_name(const EnumNames<kCount>& names, Enum value) {
  return names[static_cast<std::size_t>(value)];
}

template <typename Enum, std::size_t kCount>
std::optional<Enum> parse_enum(const EnumNames<kCount>& names, std::string_view name) {
  for (std::size_t i = 0; i < kCount; ++i)
    if (name == names[i]) return static_cast<Enum>(i);
  return std::nullopt;
}

}  // namespace regatta
