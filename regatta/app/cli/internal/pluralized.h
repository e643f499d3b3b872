// cli/internal/pluralized.h: a number with the noun that it counts: "1 leaf", "2 leaves"; and lists
// of names that would be longer than anybody reads.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "regatta/base/core/shortened_list.h"

namespace regatta::cli {

template <typename Count>
std::string pluralized(Count count, std::string_view one, std::string_view many) {
  return fmt::format("{} {}", count, count == 1 ? one : many);
}

// Of nouns with a plain plural.
template <typename Count>
std::string pluralized(Count count, const std::string& one) {
  return pluralized(count, one, one + "s");
}

// As core/shortened_list.h has it, of as many as a line of the commands has room for.
inline std::string first_of(std::vector<std::string> names) {
  return regatta::shortened_list(std::move(names), 6);
}

}  // namespace regatta::cli
