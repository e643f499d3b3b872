// core/yaml_map.h: reads the maps of a YAML file with messages that name file, line, key and
// remedy: "cluster.yaml:12: fabric.uplink: '100' has no unit; write it like 400Gbps or 50GB/s".
//
//   REGATTA_TRY(document, YamlDocument::parse(text, "cluster.yaml"));
//   YamlMap root = document.root();
//   root.allow({"name", "fabric"});              // every other key is an error
//   cluster.name = root.text("name", "cluster");
//   YamlMap fabric = root.map("fabric");
//   REGATTA_TRY_DO(document.status());           // the first error, if any
//
// Getters never fail by themselves: the document keeps the first error, and after it they return
// defaults. A parser therefore reads everything in a row and checks once, before it uses values.
#pragma once

#include <cstddef>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "regatta/base/core/ids.h"
#include "regatta/base/core/result.h"
#include "regatta/base/core/text.h"
#include "regatta/base/core/units.h"

namespace regatta {

// YAML text as a small tree that knows the line of every key and value.

// Bounds that keep a hostile file from exhausting the machine; a real file stays far below them.
inline constexpr std::size_t kYamlMaxBytes = 1U << 20U;
inline constexpr int kYamlMaxDepth = 16;
inline constexpr int kYamlMaxNodes = 100'000;
inline constexpr std::size_t kYamlMaxKeys = 4096;  // of one map

enum class YamlKind { kNull, kScalar, kList, kMap };

struct YamlEntry;

struct YamlNode {
  YamlKind kind = YamlKind::kNull;
  int line = 1;            // from 1
  bool is_quoted = false;  // a scalar that stands in quotes
  std::size_t begin = 0;   // bytes of the text that hold the value: of parse_json() alone
  std::size_t end = 0;
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

// The bounds of one text of JSON.
struct YamlBounds {
  std::size_t bytes = kYamlMaxBytes;
  int depth = kYamlMaxDepth;
  int nodes = kYamlMaxNodes;
};

// The same tree of a text in JSON, so that one reader serves both: numbers and truth values are
// scalars as they are written. Errors as parse_yaml(), with `name` for the text.
Result<YamlNode> parse_json(std::string_view text, std::string_view name, YamlBounds bounds = {});

// The tree as JSON without blanks. A scalar that had no quotes and that JSON knows as a number,
// true or false has none there either.
std::string json_text(const YamlNode& node);
// Appends `text` in double quotes, with the escapes of JSON.
void append_json_quoted(std::string_view text, std::string& out);

class YamlMap;

class YamlDocument {
 public:
  // See parse_yaml() for the errors of syntax; kInvalidInput too when the top is no map.
  static Result<YamlDocument> parse(std::string_view text, std::string_view file);
  // The same of a tree, whose top is a map.
  static Result<YamlDocument> read(YamlNode tree, std::string_view file);

  // Views of the document: it must outlive them.
  YamlMap root() const;
  // The first error that a view met.
  Status status() const;

 private:
  friend class YamlMap;
  struct State {
    std::string file;
    YamlNode tree;
    std::optional<Error> error;
  };
  std::unique_ptr<State> state_;
};

// A view of one map of a document; cheap to copy. A getter without a fallback requires the key: its
// absence is an error. Sizes and rates must be positive, times and speeds may be zero.
class YamlMap {
 public:
  static constexpr NumberRange kAboveZero{.low = std::numeric_limits<double>::denorm_min()};

  // Makes every other key an error that names the nearest of `keys`; call it before the getters.
  void allow(const std::vector<std::string>& keys) const;

  bool has(std::string_view key) const;
  YamlKind kind(std::string_view key) const;  // kNull also when the key is missing
  std::vector<std::string> keys() const;
  int line() const;
  const std::string& path() const { return path_; }  // "fabric", "" for the top

  std::string text(std::string_view key, std::optional<std::string_view> fallback = {}) const;
  int integer(std::string_view key, IntRange range = {}) const;
  int integer_or(std::string_view key, int fallback, IntRange range = {}) const;
  long long long_integer_or(std::string_view key, long long fallback, IntRange range) const;
  double number_or(std::string_view key, double fallback, NumberRange range = {}) const;
  bool boolean_or(std::string_view key, bool fallback) const;  // true, false

  // Quantities; `range` is in base units.
  Bytes bytes(std::string_view key, std::optional<Bytes> fallback = {},
              NumberRange range = kAboveZero) const;
  Seconds seconds_or(std::string_view key, Seconds fallback, NumberRange range = {}) const;
  BytesPerSecond rate(std::string_view key, std::optional<BytesPerSecond> fallback = {},
                      NumberRange range = kAboveZero) const;
  FlopsPerSecond flops_or(std::string_view key, FlopsPerSecond fallback,
                          NumberRange range = {}) const;
  double ratio_or(std::string_view key, double fallback) const;  // "20%" or 0.2: 0 < ratio <= 1

  // One of the names of `choices`.
  template <typename E>
  E choice(std::string_view key, const Choices<E>& choices, std::optional<E> fallback = {}) const;

  // Nested values. Missing or of another kind: an error, and an empty map or list.
  YamlMap map(std::string_view key) const;
  std::vector<YamlMap> maps(std::string_view key) const;
  std::vector<std::string> texts(std::string_view key) const;
  std::vector<int> integers(std::string_view key, IntRange range = {}) const;

  // The text of a single value; nullptr when the key is missing, and with an error when the value
  // is of another kind.
  const std::string* scalar(std::string_view key) const;

  // Records an error at the line of `key` (of the map when it has no such key). kUnsupported:
  // "<what> is not yet available; ...".
  void fail(std::string_view key, std::string_view message, Code code = Code::kInvalidInput) const;

 private:
  friend class YamlDocument;
  YamlMap(YamlDocument::State* state, const YamlNode* node, std::string path)
      : state_(state), node_(node), path_(std::move(path)) {}

  void fail_at(int line, const std::string& path, std::string_view message, Code code) const;

  YamlDocument::State* state_;
  const YamlNode* node_;
  std::string path_;
};

// The index in `names` of the value of `key`; -1 with an error when the value is none of them, and
// when the key is missing: without one if `is_optional`.
int yaml_choice(const YamlMap& map, std::string_view key, const std::vector<std::string>& names,
                bool is_optional);

template <typename E>
E YamlMap::choice(std::string_view key, const Choices<E>& choices,
                  std::optional<E> fallback) const {
  std::vector<std::string> names;
  for (const auto& [name, value] : choices)
    names.push_back(name);
  const int index = yaml_choice(*this, key, names, fallback.has_value());
  return index < 0 ? fallback.value_or(choices.front().second) : at(choices, index).second;
}

}  // namespace regatta
