// report/internal/old_names.h: old names of JSON keys, printed beside the new ones until the next
// minor version.
#pragma once

#include <initializer_list>
#include <utility>

#include <nlohmann/json.hpp>

namespace regatta::report {

// Copies the value of each new key that `object` has to its old key.
template <typename Json>
void add_old_names(Json& object,
                   std::initializer_list<std::pair<const char*, const char*>> new_and_old) {
  for (const auto& [name, old_name] : new_and_old)
    if (object.contains(name)) object[old_name] = object[name];
}

}  // namespace regatta::report
