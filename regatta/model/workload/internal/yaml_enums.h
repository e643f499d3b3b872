// workload/internal/yaml_enums.h: the words of an enumeration as a file may say them.
#pragma once

#include <array>
#include <cstddef>
#include <optional>

#include "regatta/base/core/yaml_map.h"

namespace regatta::workload {

// Every one of `values` by its to_string().
template <typename E, std::size_t kCount>
Choices<E> enum_choices(const std::array<E, kCount>& values) {
  Choices<E> choices;
  for (const E value : values)
    choices.emplace_back(to_string(value), value);
  return choices;
}

// Whether the file leaves `key` to the planner: by no value, or by auto.
inline bool is_unset_or_auto(const YamlMap& map, const char* key) {
  return !map.has(key) || (map.kind(key) == YamlKind::kScalar && map.text(key) == "auto");
}

}  // namespace regatta::workload
