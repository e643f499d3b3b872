// core/yaml_tree.h: YAML text as a small tree that knows the line of every key and value. The only
// place that calls yaml-cpp; everything else reads through core/yaml_map.h.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "regatta/base/core/result.h"

namespace regatta {

// Bounds that keep a hostile file from exhausting the machine; a real file stays far below them.
inline constexpr std::size_t kYamlMaxBytes = 1U << 20U;
inline constexpr int kYamlMaxDepth = 16;
inline constexpr int kYamlMaxNodes = 100'000;
inline constexpr std::size_t kYamlMaxKeys = 4096;  // of one map

enum class YamlKind { kNull, kScalar, kList, kMap };

struct YamlEntry;

struct YamlNode {
  YamlKind kind = YamlKind::kNull;
  int line = 1;                    // from 1
  std::string scalar;              // kScalar
  std::vector<YamlNode> items;     // kList
  std::vector<YamlEntry> entries;  // kMap, in the order of the file

  // The value of `key` in a map; nullptr when there is none.
  const YamlNode* find(std::string_view key) const;
};

struct YamlEntry {
  std::string key;
  int line = 1;
  YamlNode value;
};

// The one document of `text`; `file` only names it in messages. Empty text is a kNull node.
// Fails with kInvalidInput on bad syntax, a key given twice, a key that is no text, anchors and
// aliases, more than one document, or a bound exceeded.
Result<YamlNode> parse_yaml(std::string_view text, std::string_view file);

}  // namespace regatta
