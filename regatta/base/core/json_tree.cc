// The parser of JSON texts into the tree of yaml_map.h, so that one reader serves files in YAML and
// requests in JSON. Source: RFC 8259.
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "regatta/base/core/internal/utf8.h"
#include "regatta/base/core/text.h"
#include "regatta/base/core/yaml_map.h"

namespace regatta {
namespace {

constexpr std::string_view kDigits = "0123456789";

class JsonTreeParser {
 public:
  JsonTreeParser(std::string_view text, YamlBounds bounds) : text_(text), bounds_(bounds) {}

  // The tree, or what is wrong at line() in `problem`.
  bool parse(YamlNode& root, std::string& problem) {
    const bool is_whole = value(root, 0) && at_end();
    problem = std::move(problem_);
    return is_whole;
  }
  int line() const { return line_; }

 private:
  bool fail(std::string problem) {
    if (problem_.empty()) problem_ = std::move(problem);
    return false;
  }

  bool at_end() {
    skip_blanks();
    return position_ == text_.size() || fail("text follows the value; send one value");
  }

  void skip_blanks() {
    for (; position_ < text_.size(); ++position_) {
      const char letter = text_[position_];
      if (letter == '\n') ++line_;
      if (letter != ' ' && letter != '\t' && letter != '\n' && letter != '\r') return;
    }
  }

  bool take(char letter) {
    if (position_ >= text_.size() || text_[position_] != letter) return false;
    ++position_;
    return true;
  }

  bool value(YamlNode& node, int depth) {
    skip_blanks();
    if (depth > bounds_.depth)
      return fail(fmt::format("nested more than {} levels deep; flatten it", bounds_.depth));
    if (++values_ > bounds_.nodes)
      return fail(fmt::format("more than {} values; split it", bounds_.nodes));
    if (position_ >= text_.size()) return fail("the text ends too early; complete it");
    node.line = line_;
    node.begin = position_;
    const bool is_read = value_of(text_[position_], node, depth);
    node.end = position_;
    return is_read;
  }

  bool value_of(char first, YamlNode& node, int depth) {
    if (first == '{') return object(node, depth);
    if (first == '[') return array(node, depth);
    node.kind = YamlKind::kScalar;
    node.is_quoted = first == '"';
    if (node.is_quoted) return text(node.scalar);
    if (first == '-' || kDigits.find(first) != std::string_view::npos) return number(node.scalar);
    for (const std::string_view word : {"true", "false", "null"}) {
      if (!text_.substr(position_).starts_with(word)) continue;
      position_ += word.size();
      if (word == "null")
        node.kind = YamlKind::kNull;
      else
        node.scalar = word;
      return true;
    }
    return fail("no JSON value; write an object, a list, a text in quotes, a number, true, false");
  }

  bool object(YamlNode& node, int depth) {
    node.kind = YamlKind::kMap;
    ++position_;
    skip_blanks();
    if (take('}')) return true;
    while (true) {
      skip_blanks();
      YamlEntry& entry = node.entries.emplace_back();
      entry.line = line_;
      if (position_ >= text_.size() || text_[position_] != '"')
        return fail("a key must stand in double quotes");
      if (!text(entry.key)) return false;
      if (node.entries.size() > kYamlMaxKeys)
        return fail(fmt::format("more than {} keys in one object; split it", kYamlMaxKeys));
      for (std::size_t i = 0; i + 1 < node.entries.size(); ++i) {
        if (node.entries[i].key == entry.key)
          return fail(fmt::format("{}: given twice; keep one", printable(entry.key, 64)));
      }
      skip_blanks();
      if (!take(':')) return fail("a colon must follow the key");
      if (!value(entry.value, depth + 1)) return false;
      skip_blanks();
      if (take('}')) return true;
      if (!take(',')) return fail("a comma or } must follow the value");
    }
  }

  bool array(YamlNode& node, int depth) {
    node.kind = YamlKind::kList;
    ++position_;
    skip_blanks();
    if (take(']')) return true;
    while (true) {
      if (!value(node.items.emplace_back(), depth + 1)) return false;
      skip_blanks();
      if (take(']')) return true;
      if (!take(',')) return fail("a comma or ] must follow the value");
    }
  }

  std::size_t digits() {
    const std::size_t from = position_;
    while (position_ < text_.size() && kDigits.find(text_[position_]) != std::string_view::npos)
      ++position_;
    return position_ - from;
  }

  bool number(std::string& scalar) {
    const std::size_t from = position_;
    take('-');
    const bool begins_with_zero = position_ < text_.size() && text_[position_] == '0';
    const std::size_t whole = digits();
    if (whole == 0 || (begins_with_zero && whole > 1)) return fail("no number of JSON");
    if (take('.') && digits() == 0) return fail("no digit follows the point of the number");
    if (take('e') || take('E')) {
      if (!take('+')) take('-');
      if (digits() == 0) return fail("no digit follows the exponent of the number");
    }
    scalar = text_.substr(from, position_ - from);
    return true;
  }

  bool text(std::string& out) {
    ++position_;
    while (position_ < text_.size()) {
      const std::size_t from = position_;
      while (position_ < text_.size() && text_[position_] != '"' && text_[position_] != '\\' &&
             static_cast<unsigned char>(text_[position_]) >= 0x20)
        ++position_;
      out.append(text_, from, position_ - from);
      if (position_ >= text_.size()) break;
      const char letter = text_[position_++];
      if (letter == '"') return true;
      if (letter != '\\') return fail("a control character in a text; write it as \\n or \\u0009");
      if (!escape(out)) return false;
    }
    return fail("a quote is not closed; close it");
  }

  bool escape(std::string& out) {
    constexpr std::string_view kLetters = "\"\\/bfnrt";
    constexpr std::string_view kMeant = "\"\\/\b\f\n\r\t";
    const char letter = position_ < text_.size() ? text_[position_++] : '\0';
    if (const std::size_t index = kLetters.find(letter); index != std::string_view::npos) {
      out += kMeant[index];
      return true;
    }
    std::uint32_t code = 0;
    if (letter != 'u' || !four_hex(code)) return fail("an unknown escape in a text");
    if (code >= 0xDC00 && code < 0xE000) return fail("half a surrogate pair in a text");
    if (code >= 0xD800 && code < 0xDC00) {
      std::uint32_t low = 0;
      if (!text_.substr(position_).starts_with("\\u"))
        return fail("half a surrogate pair in a text");
      position_ += 2;
      if (!four_hex(low) || low < 0xDC00 || low >= 0xE000)
        return fail("half a surrogate pair in a text");
      code = 0x10000 + ((code - 0xD800) << 10U) + (low - 0xDC00);
    }
    append_utf8(out, code);
    return true;
  }

  bool four_hex(std::uint32_t& code) {
    if (text_.size() - position_ < 4) return false;
    const char* from = text_.data() + position_;
    const auto [end, error] = std::from_chars(from, from + 4, code, 16);
    if (error != std::errc() || end != from + 4) return false;
    position_ += 4;
    return true;
  }

  static void append_utf8(std::string& out, std::uint32_t code) {
    const auto byte = [&out](std::uint32_t value) { out += static_cast<char>(value); };
    if (code < 0x80) return byte(code);
    if (code < 0x800) {
      byte(0xC0U | (code >> 6U));
    } else {
      if (code < 0x10000) {
        byte(0xE0U | (code >> 12U));
      } else {
        byte(0xF0U | (code >> 18U));
        byte(0x80U | ((code >> 12U) & 0x3FU));
      }
      byte(0x80U | ((code >> 6U) & 0x3FU));
    }
    byte(0x80U | (code & 0x3FU));
  }

  std::string_view text_;
  YamlBounds bounds_;
  std::size_t position_ = 0;
  int line_ = 1;
  int values_ = 0;
  std::string problem_;
};

// Whether JSON has the scalar as a number, true or false.
bool is_bare(const YamlNode& node) {
  if (node.is_quoted) return false;
  if (node.scalar == "true" || node.scalar == "false") return true;
  YamlNode number;
  std::string problem;
  const bool begins_as_number =
      !node.scalar.empty() &&
      (node.scalar.front() == '-' || kDigits.find(node.scalar.front()) != std::string_view::npos);
  return begins_as_number && JsonTreeParser(node.scalar, {}).parse(number, problem);
}

void write_node(const YamlNode& node, std::string& out) {
  const auto write_all = [&out](const auto& each, const auto& write) {
    bool is_first = true;
    for (const auto& one : each) {
      if (!is_first) out += ',';
      is_first = false;
      write(one);
    }
  };
  switch (node.kind) {
    case YamlKind::kNull:
      out += "null";
      return;
    case YamlKind::kScalar:
      if (is_bare(node))
        out += node.scalar;
      else
        append_json_quoted(node.scalar, out);
      return;
    case YamlKind::kList:
      out += '[';
      write_all(node.items, [&out](const YamlNode& item) { write_node(item, out); });
      out += ']';
      return;
    case YamlKind::kMap:
      out += '{';
      write_all(node.entries, [&out](const YamlEntry& entry) {
        append_json_quoted(entry.key, out);
        out += ':';
        write_node(entry.value, out);
      });
      out += '}';
      return;
  }
}

}  // namespace

void append_json_quoted(std::string_view text, std::string& out) {
  out += '"';
  for (const char letter : text) {
    if (letter == '"' || letter == '\\')
      out.append({'\\', letter});
    else if (static_cast<unsigned char>(letter) < 0x20)
      out += fmt::format("\\u{:04x}", static_cast<unsigned>(letter));
    else
      out += letter;
  }
  out += '"';
}

std::string json_text(const YamlNode& node) {
  std::string out;
  write_node(node, out);
  return out;
}

Result<YamlNode> parse_json(std::string_view text, std::string_view name, YamlBounds bounds) {
  const auto refuse = [&](int line, std::string_view problem) {
    return Error{Code::kInvalidInput, fmt::format("{}:{}: {}", name, line, problem)};
  };
  if (text.size() > bounds.bytes)
    return refuse(1, fmt::format("larger than {} bytes; split it", bounds.bytes));
  if (utf8_valid_prefix(text) < text.size())
    return refuse(1, "a byte that is no letter of UTF-8; send the text as UTF-8");
  JsonTreeParser parser(text, bounds);
  YamlNode root;
  std::string problem;
  if (!parser.parse(root, problem)) return refuse(parser.line(), problem);
  return root;
}

}  // namespace regatta
