#include <algorithm>
#include <cstddef>
#include <exception>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include "regatta/base/core/ids.h"
#include "regatta/base/core/internal/utf8.h"
#include "regatta/base/core/text.h"
#include "regatta/base/core/yaml_map.h"

namespace regatta {
namespace {

// An unclosed bracket gives this error too.
constexpr const char* kNoWord = "a key must be a plain word; check colons, brackets and quotes";

// Thrown through yaml-cpp to stop it; caught in parse_yaml().
struct Refused {
  int line = 1;
  std::string message;
};

// Builds the tree from the parser's events.
class TreeBuilder : public YAML::EventHandler {
 public:
  YamlNode take() { return std::move(root_); }

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (++documents_ > 1)
      throw Refused{line_of(mark), "a second document starts here; write one document per file"};
  }
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    refuse_anchor(mark, anchor);
    add(node_at(mark, YamlKind::kNull));
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t /*anchor*/) override {
    throw Refused{line_of(mark), "aliases are not read here; write the value out"};
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    refuse_anchor(mark, anchor);
    if (expects_key()) {
      add_key(mark, value);
      return;
    }
    YamlNode node = node_at(mark, YamlKind::kScalar);
    node.scalar = value;
    node.is_quoted = tag == "!";
    add(std::move(node));
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& /*tag*/, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value /*style*/) override {
    start(mark, anchor, YamlKind::kList);
  }
  void OnSequenceEnd() override { end(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& /*tag*/, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value /*style*/) override {
    start(mark, anchor, YamlKind::kMap);
  }
  void OnMapEnd() override { end(); }

 private:
  struct Open {
    YamlNode node;
    bool has_key = false;  // a map that waits for the value of its last entry
  };

  static int line_of(const YAML::Mark& mark) { return mark.line + 1; }

  static YamlNode node_at(const YAML::Mark& mark, YamlKind kind) {
    YamlNode node;
    node.kind = kind;
    node.line = line_of(mark);
    return node;
  }

  static void refuse_anchor(const YAML::Mark& mark, YAML::anchor_t anchor) {
    if (anchor != YAML::NullAnchor)
      throw Refused{line_of(mark),
                    "anchors are not read here; write the value out where it is used"};
  }

  bool expects_key() const {
    return !open_.empty() && open_.back().node.kind == YamlKind::kMap && !open_.back().has_key;
  }

  void count(int line) {
    if (++nodes_ > kYamlMaxNodes)
      throw Refused{line, fmt::format("more than {} values; split the file", kYamlMaxNodes)};
  }

  // "fabric.uplink": the keys that are open, then `key`.
  std::string path_to(const std::string& key) const {
    std::string path;
    for (std::size_t i = 0; i + 1 < open_.size(); ++i) {
      if (open_[i].node.kind == YamlKind::kMap) path += open_[i].node.entries.back().key + ".";
    }
    return path + key;
  }

  void add_key(const YAML::Mark& mark, const std::string& key) {
    count(line_of(mark));
    Open& map = open_.back();
    for (const YamlEntry& entry : map.node.entries) {
      if (entry.key == key) {
        throw Refused{line_of(mark), fmt::format("{}: given twice, first in line {}; keep one",
                                                 path_to(key), entry.line)};
      }
    }
    if (map.node.entries.size() >= kYamlMaxKeys) {
      throw Refused{line_of(mark),
                    fmt::format("more than {} keys in one map; split it", kYamlMaxKeys)};
    }
    map.node.entries.push_back({.key = key, .line = line_of(mark), .value = {}});
    map.has_key = true;
  }

  void start(const YAML::Mark& mark, YAML::anchor_t anchor, YamlKind kind) {
    refuse_anchor(mark, anchor);
    count(line_of(mark));
    if (expects_key()) throw Refused{line_of(mark), kNoWord};
    if (open_.size() >= static_cast<std::size_t>(kYamlMaxDepth)) {
      throw Refused{line_of(mark),
                    fmt::format("nested more than {} levels deep; flatten it", kYamlMaxDepth)};
    }
    open_.push_back({.node = node_at(mark, kind)});
  }

  void end() {
    YamlNode node = std::move(open_.back().node);
    open_.pop_back();
    place(std::move(node));
  }

  void add(YamlNode node) {
    count(node.line);
    if (expects_key()) throw Refused{node.line, kNoWord};
    place(std::move(node));
  }

  void place(YamlNode node) {
    if (open_.empty()) {
      root_ = std::move(node);
      return;
    }
    Open& parent = open_.back();
    if (parent.node.kind == YamlKind::kList) {
      parent.node.items.push_back(std::move(node));
      return;
    }
    parent.node.entries.back().value = std::move(node);
    parent.has_key = false;
  }

  YamlNode root_;
  std::vector<Open> open_;
  int nodes_ = 0;
  int documents_ = 0;
};

// The bytes of a message that are shown: it may quote long keys of the file.
constexpr std::size_t kLongestMessage = 1000;

Error refuse(std::string_view file, int line, std::string_view message) {
  return {Code::kInvalidInput,
          fmt::format("{}:{}: {}", file, line, printable(message, kLongestMessage))};
}

// Whether a line is a key whose colon has no space behind it: to YAML "steps:3" is one word, and it
// is the next line that makes no sense.
bool has_glued_colon(std::string_view line) {
  line = trim(line);
  const std::size_t colon = line.find_first_not_of("abcdefghijklmnopqrstuvwxyz_");
  return colon != std::string_view::npos && colon > 0 && line[colon] == ':' &&
         colon + 1 < line.size() && line[colon + 1] != ' ';
}

// The remedy that yaml-cpp's message of a syntax error lacks.
std::string remedy_at(std::string_view text, int line) {
  const std::vector<std::string> lines = split(text, '\n');
  const auto at = [&lines](int number) -> std::string_view {
    const bool exists = number >= 1 && number <= static_cast<int>(lines.size());
    return exists ? std::string_view(lines[as_index(number - 1)]) : "";
  };
  const std::size_t start = at(line).find_first_not_of(' ');
  if (start != std::string_view::npos && at(line)[start] == '\t')
    return "the line starts with a tab; indent with spaces";
  for (const int number : {line, line - 1}) {
    if (has_glued_colon(at(number)))
      return fmt::format("no space follows the colon in line {}", number);
  }
  return "check indentation, brackets and quotes";
}

// A handler that ignores all events.
class Ignore : public YAML::EventHandler {
 public:
  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark&, YAML::anchor_t) override {}
  void OnAlias(const YAML::Mark&, YAML::anchor_t) override {}
  void OnScalar(const YAML::Mark&, const std::string&, YAML::anchor_t,
                const std::string&) override {}
  void OnSequenceStart(const YAML::Mark&, const std::string&, YAML::anchor_t,
                       YAML::EmitterStyle::value) override {}
  void OnSequenceEnd() override {}
  void OnMapStart(const YAML::Mark&, const std::string&, YAML::anchor_t,
                  YAML::EmitterStyle::value) override {}
  void OnMapEnd() override {}
};

// Whether a quote is left open in a text that was parsed without an error. The end mark of a
// document, appended to the text, is then inside the quote, where the parser rejects it.
bool has_open_quote(std::string_view text) {
  if (text.find_first_of("\"'") == std::string_view::npos) return false;
  try {
    std::istringstream stream{std::string(text) + "\n...\n"};
    YAML::Parser parser(stream);
    Ignore ignore;
    while (parser.HandleNextDocument(ignore)) {
    }
  } catch (const YAML::Exception& error) {
    return error.msg == YAML::ErrorMsg::DOC_IN_SCALAR;
  }
  return false;
}

// The last line with an open quote.
int line_of_open_quote(std::string_view text) {
  const std::vector<std::string> lines = split(text, '\n');
  for (std::size_t i = lines.size(); i > 0; --i) {
    const std::string& line = lines[i - 1];
    if (std::count(line.begin(), line.end(), '"') % 2 == 1 ||
        std::count(line.begin(), line.end(), '\'') % 2 == 1)
      return static_cast<int>(i);
  }
  return 1;
}

}  // namespace

const YamlNode* YamlNode::find(std::string_view key) const {
  for (const YamlEntry& entry : entries) {
    if (entry.key == key) return &entry.value;
  }
  return nullptr;
}

Result<YamlNode> parse_yaml(std::string_view text, std::string_view file) {
  if (text.size() > kYamlMaxBytes) {
    return Error{
        Code::kInvalidInput,
        fmt::format("{}: larger than {} bytes; is this the right file?", file, kYamlMaxBytes)};
  }
  if (const std::size_t end = utf8_valid_prefix(text); end < text.size()) {
    const int line = 1 + static_cast<int>(std::ranges::count(text.substr(0, end), '\n'));
    return refuse(file, line, "a byte that is no letter of UTF-8; write the file as UTF-8");
  }
  TreeBuilder builder;
  try {
    std::istringstream stream{std::string(text)};
    YAML::Parser parser(stream);
    while (parser.HandleNextDocument(builder)) {
    }
    if (has_open_quote(text))
      return refuse(file, line_of_open_quote(text), "a quote is not closed; close it");
  } catch (const Refused& refused) {
    return refuse(file, refused.line, refused.message);
  } catch (const YAML::Exception& error) {
    const int line = error.mark.is_null() ? 1 : error.mark.line + 1;
    return refuse(file, line, fmt::format("not YAML: {}; {}", error.msg, remedy_at(text, line)));
  } catch (const std::exception& error) {
    return refuse(file, 1, fmt::format("not YAML: {}", error.what()));
  }
  return builder.take();
}

}  // namespace regatta
