// core/shortened_list.h: counts and lists of names as text for people.
#pragma once

#include <concepts>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "regatta/base/core/text.h"

namespace regatta {

// "s0, s1, s2", of more than `most` "s0, s1 and 126 others".
inline std::string shortened_list(std::vector<std::string> names, std::size_t most) {
  if (names.size() <= most) return join(names, ", ");
  const std::size_t others = names.size() - most;
  names.resize(most);
  return join(names, ", ") + " and " + std::to_string(others) +
         (others == 1 ? " other" : " others");
}

// "1 leaf", "2 leaves".
std::string pluralized(std::integral auto count, std::string_view one, std::string_view many) {
  return std::to_string(count) + " " + std::string(count == 1 ? one : many);
}
// "1 server", "2 servers": a noun with a plain plural.
std::string pluralized(std::integral auto count, const std::string& one) {
  return pluralized(count, one, one + "s");
}

}  // namespace regatta
