// cli/counted.h: a number with the noun that it counts: "1 leaf", "2 leaves".
#pragma once

#include <string>
#include <string_view>

#include <fmt/format.h>

namespace regatta::cli {

template <typename Count>
std::string counted(Count count, std::string_view one, std::string_view many) {
  return fmt::format("{} {}", count, count == 1 ? one : many);
}

// Of nouns with a plain plural.
template <typename Count>
std::string counted(Count count, const std::string& one) {
  return counted(count, one, one + "s");
}

}  // namespace regatta::cli
