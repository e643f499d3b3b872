// cli/counted.h: a number with the noun that it counts: "1 leaf", "2 leaves"; and lists of names
// that would be longer than anybody reads.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "regatta/core/text.h"

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

// "s0, s1, s2", of more than `most` "s0, s1 and 126 others".
inline std::string first_of(std::vector<std::string> names, std::size_t most = 6) {
  if (names.size() <= most) return join(names, ", ");
  const std::size_t others = names.size() - most;
  names.resize(most);
  return join(names, ", ") + " and " + counted(others, "other");
}

}  // namespace regatta::cli
