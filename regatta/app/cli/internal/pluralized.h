// cli/internal/pluralized.h: lists of names for one line of a command's output.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "regatta/base/core/text.h"

namespace regatta::cli {

// The first six names and the count of the others.
inline std::string first_of(std::vector<std::string> names) {
  return regatta::shortened_list(std::move(names), 6);
}

}  // namespace regatta::cli
