#include "regatta/gpu/sharing/internal/hook/ptx_variables.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <optional>

#include "regatta/gpu/sharing/internal/hook/allocation_table.h"

namespace regatta::sharing::hook {

// Small ones share blocks; two of more than half a block never do.
std::uint64_t bytes_of_variable(std::uint64_t bytes) {
  return bytes > kBlockBytes / 2 ? whole_blocks(bytes) : 2 * bytes;
}

namespace {

bool is_letter(char letter) {
  return std::isalnum(static_cast<unsigned char>(letter)) != 0 || letter == '_' || letter == '$' ||
         letter == '%';
}

// Words and single signs of a text, without comments, quoted texts and spaces.
class PtxTokens {
 public:
  explicit PtxTokens(std::string_view text) : text_(text) {}

  // "" at the end.
  std::string_view next() {
    skip();
    if (at_ >= text_.size()) return {};
    const std::size_t begin = at_++;
    if (text_[begin] == '"') {
      while (at_ < text_.size() && text_[at_] != '"' && text_[at_] != '\n')
        ++at_;
      at_ += at_ < text_.size() ? 1 : 0;
    } else if (is_letter(text_[begin]) || text_[begin] == '.') {
      // An instruction is one word: `ld.global.u32`.
      const bool is_directive = text_[begin] == '.';
      while (at_ < text_.size() && (is_letter(text_[at_]) || (!is_directive && text_[at_] == '.')))
        ++at_;
    }
    return text_.substr(begin, at_ - begin);
  }

 private:
  void skip() {
    for (;;) {
      while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_])) != 0)
        ++at_;
      const std::string_view rest = text_.substr(at_);
      if (rest.starts_with("//")) {
        at_ += std::min(rest.size(), rest.find('\n'));
      } else if (rest.starts_with("/*")) {
        const std::size_t end = rest.find("*/", 2);
        at_ += end == rest.npos ? rest.size() : end + 2;
      } else {
        return;
      }
    }
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

// `4096`, `0x1000`, `0b11`, `017`, with a `U` behind.
std::optional<std::uint64_t> number_of(std::string_view word) {
  if (word.ends_with('U')) word.remove_suffix(1);
  int base = 10;
  if (word.starts_with("0x") || word.starts_with("0X")) base = 16;
  if (word.starts_with("0b") || word.starts_with("0B")) base = 2;
  if (base != 10)
    word.remove_prefix(2);
  else if (word.size() > 1 && word.starts_with('0'))
    base = 8;
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number, base);
  if (error == std::errc::result_out_of_range) return ~0ULL;
  if (error != std::errc() || end != word.data() + word.size()) return std::nullopt;
  return number;
}

// Bytes of one element: `.b8`, `.u64`, `.f16x2`, `.texref`; none: the word is no type.
std::optional<std::uint64_t> type_bytes(std::string_view word) {
  constexpr std::uint64_t kReference = 256;  // a handle, and what belongs to it
  if (word == ".texref" || word == ".surfref" || word == ".samplerref") return kReference;
  if (word == ".pred") return 1;
  const std::size_t first = word.find_first_of("0123456789");
  if (word.size() < 3 || first == word.npos || first < 2 || word.starts_with(".v"))
    return std::nullopt;
  std::uint64_t bits = 0;
  const auto [end, error] = std::from_chars(word.data() + first, word.data() + word.size(), bits);
  if (error != std::errc() || bits > 1024) return std::nullopt;
  const bool is_pair = std::string_view(end, word.data() + word.size()).starts_with("x2");
  // `.e4m3` and the like are narrower than their first number says, but never wider than 8 bits.
  if (word.starts_with(".e")) bits = 8;
  return (bits + 7) / 8 * (is_pair ? 2 : 1);
}

class VariableReader {
 public:
  explicit VariableReader(std::string_view text) : tokens_(text), text_bytes_(text.size()) {}

  VariableBytes read() {
    for (std::string_view word = tokens_.next(); !word.empty(); word = tokens_.next()) {
      if (word != ".global" && word != ".const") continue;
      read_declaration();
    }
    return found_;
  }

 private:
  // After `.global`, up to `;`: attributes, the type, and one or more names with their sizes.
  void read_declaration() {
    std::uint64_t element = 0;
    std::uint64_t vector = 1;
    std::uint64_t elements = 1;
    bool has_name = false;
    const auto finish = [&] {
      if (has_name && element != 0)
        add(saturated_product(saturated_product(element, vector), elements));
      has_name = false;
      elements = 1;
    };
    for (std::string_view word = tokens_.next(); !word.empty(); word = tokens_.next()) {
      if (word == "=") word = skip_values();
      if (word == ";" || word == "{" || word == "}" || word.empty()) break;
      if (word == ",") {
        finish();
      } else if (word == "[") {
        elements = saturated_product(elements, read_size());
      } else if (word == "(") {
        while (!word.empty() && word != ")")
          word = tokens_.next();
      } else if (word == ".align") {
        tokens_.next();
      } else if (word.starts_with(".v") && number_of(word.substr(2))) {
        vector = *number_of(word.substr(2));
      } else if (const auto bytes = type_bytes(word)) {
        element = *bytes;
      } else if (!word.starts_with('.') && is_letter(word.front())) {
        has_name = true;
      }
    }
    finish();
  }

  // `[16]`; `[]` has as many elements as there are values, which the text has room for.
  std::uint64_t read_size() {
    const std::string_view word = tokens_.next();
    if (word == "]") return text_bytes_;
    const auto number = number_of(word);
    const bool is_plain = number && tokens_.next() == "]";
    if (is_plain) return *number;
    found_.is_known = false;
    return number.value_or(1);
  }

  // The sign that ends them: `,` before the next name, or `;`.
  std::string_view skip_values() {
    int depth = 0;
    for (;;) {
      const std::string_view word = tokens_.next();
      if (word.empty() || word == ";" || (word == "," && depth <= 0)) return word;
      if (word == "{" || word == "(") ++depth;
      if (word == "}" || word == ")") --depth;
    }
  }

  void add(std::uint64_t bytes) {
    found_.bytes = saturated_sum(found_.bytes, bytes_of_variable(bytes));
  }

  PtxTokens tokens_;
  std::uint64_t text_bytes_;
  VariableBytes found_;
};

}  // namespace

VariableBytes variables_of_ptx(std::string_view text) {
  return VariableReader(text).read();
}

}  // namespace regatta::sharing::hook
