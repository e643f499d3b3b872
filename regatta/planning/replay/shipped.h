// replay/shipped.h: the tables of published runs that are small enough to be part of the program.
#pragma once

#include <string_view>
#include <vector>

namespace regatta::replay {

struct ShippedSet {
  const char* name;       // of published.h
  std::string_view text;  // as its file
};
std::vector<ShippedSet> shipped_sets();

}  // namespace regatta::replay
