// replay/embedded_sets.h: the tables of published runs that are small enough to be part of the
// program.
#pragma once

#include <string_view>
#include <vector>

namespace regatta::replay {

struct EmbeddedSet {
  const char* name;       // of published_run.h
  std::string_view text;  // as its file
};
std::vector<EmbeddedSet> embedded_sets();

}  // namespace regatta::replay
