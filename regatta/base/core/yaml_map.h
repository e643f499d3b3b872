// core/yaml_map.h: reads the maps of a YAML file with messages that name file, line, key and
// remedy: "cluster.yaml:12: fabric.uplink: '100' has no unit; write it like 400Gbps or 50GB/s".
//
//   REGATTA_TRY(document, YamlDocument::parse(text, "cluster.yaml"));
//   YamlMap root = document.root();
//   root.allow({"name", "fabric"});              // every other key is an error
//   cluster.name = root.text_or("name", "cluster");
//   YamlMap fabric = root.map("fabric");
//   REGATTA_TRY_DO(document.status());           // the first error, if any
//
// Getters never fail by themselves: the document keeps the first error, and after it they return
// defaults. A parser therefore reads everything in a row and checks once, before it uses values.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "regatta/base/core/result.h"
#include "regatta/base/core/text.h"
#include "regatta/base/core/units.h"

namespace regatta {

// YAML text as a small tree that knows the line of every key and value. The only
// place that calls yaml-cpp; everything else reads through core/yaml_map.h.

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

class YamlMap;

class YamlDocument {
 public:
  // See parse_yaml() for the errors of syntax; kInvalidInput too when the top is no map.
  static Result<YamlDocument> parse(std::string_view text, std::string_view file);

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

// A view of one map of a document; cheap to copy. Required getters take no default: a missing key
// is an error. Quantities must be positive unless the getter's name says otherwise.
class YamlMap {
 public:
  // Every other key is an error that offers the nearest of `keys`; call it before the getters.
  void allow(const std::vector<std::string>& keys) const;

  bool has(std::string_view key) const;
  bool is_map(std::string_view key) const;
  bool is_list(std::string_view key) const;
  bool is_scalar(std::string_view key) const;
  std::vector<std::string> keys() const;
  int line() const;
  const std::string& path() const { return path_; }  // "fabric", "" for the top

  std::string text(std::string_view key) const;
  std::string text_or(std::string_view key, std::string_view fallback) const;
  int integer(std::string_view key, IntRange range = {}) const;
  int integer_or(std::string_view key, int fallback, IntRange range = {}) const;
  long long long_integer_or(std::string_view key, long long fallback, IntRange range) const;
  double number_or(std::string_view key, double fallback, NumberRange range = {}) const;
  bool boolean_or(std::string_view key, bool fallback) const;  // true, false

  Bytes bytes(std::string_view key) const;
  Bytes bytes_or(std::string_view key, Bytes fallback) const;
  Seconds seconds_or(std::string_view key, Seconds fallback) const;  // 0s is accepted
  BytesPerSecond rate(std::string_view key) const;
  BytesPerSecond rate_or(std::string_view key, BytesPerSecond fallback) const;
  FlopsPerSecond flops_or(std::string_view key, FlopsPerSecond fallback) const;  // 0 is accepted
  double ratio_or(std::string_view key, double fallback) const;  // "20%" or 0.2: 0 < ratio <= 1

  // One of the words of `choices`.
  template <typename E>
  E choice_or(std::string_view key, E fallback, const Choices<E>& choices) const {
    if (!has(key)) return fallback;
    std::vector<std::string> words;
    for (const auto& [word, value] : choices)
      words.push_back(word);
    const int index = word_index(key, words);
    return index < 0 ? fallback : choices[static_cast<std::size_t>(index)].second;
  }
  template <typename E>
  E choice(std::string_view key, const Choices<E>& choices) const {
    require(key, "a word");
    return choice_or(key, choices.front().second, choices);
  }

  // Nested values. Missing or of another kind: an error, and an empty map or list.
  YamlMap map(std::string_view key) const;
  std::vector<YamlMap> maps(std::string_view key) const;
  std::vector<std::string> texts(std::string_view key) const;
  std::vector<int> integers(std::string_view key, IntRange range = {}) const;

  // Records an error at the line of `key` (of the map when it has no such key).
  void fail(std::string_view key, std::string_view message, Code code = Code::kInvalidInput) const;
  // The same, kUnsupported: "<what> is not yet available; ...".
  void refuse(std::string_view key, std::string_view message) const;

 private:
  friend class YamlDocument;
  YamlMap(YamlDocument::State* state, const YamlNode* node, std::string path)
      : state_(state), node_(node), path_(std::move(path)) {}

  bool require(std::string_view key, std::string_view kind) const;
  const std::string* scalar(std::string_view key) const;
  std::optional<long long> whole_number(std::string_view key, const std::string& text,
                                        IntRange range) const;
  int word_index(std::string_view key, const std::vector<std::string>& words) const;
  std::string path_of(std::string_view key) const;
  void fail_at(int line, const std::string& path, std::string_view message, Code code) const;
  template <typename T>
  T quantity(std::string_view key, T fallback, Result<T> (*parse)(std::string_view),
             bool zero_is_fine) const;

  YamlDocument::State* state_;
  const YamlNode* node_;
  std::string path_;
};

}  // namespace regatta
