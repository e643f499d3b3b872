// core/shortened_list.h: lists of names that would be longer than anybody reads.
#pragma once

#include <cstddef>
#include <string>
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

}  // namespace regatta
