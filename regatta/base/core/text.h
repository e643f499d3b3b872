// core/text.h: text: words, lists and byte counts for messages; numbers, enumerators and lines out
// of text.
#pragma once

#include <array>
#include <charconv>
#include <concepts>
#include <cstddef>
#include <cstring>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <utility>
#include <vector>

namespace regatta {

std::string join(const std::vector<std::string>& parts, std::string_view separator);

// Splits at each `separator`; the empty text gives one empty part.
std::vector<std::string> split(std::string_view text, char separator);

std::string_view trim(std::string_view text);

// `text` fit for a message: control characters become '?', and a text longer than `longest` bytes
// is cut and ends with "...".
std::string printable(std::string_view text, std::size_t longest);

// The member of `known` that "unknown key" messages offer instead of `word`: one that is `word`, a
// '-' and more, else the nearest by edit distance; "" when none is within 3 edits and half the
// letters of `word`.
std::string nearest_word(std::string_view word, const std::vector<std::string>& known);

// Rows as aligned columns, two spaces apart, first row the heading; columns whose cells all start
// with a digit, sign or "-" (heading aside) align to the right. Ends with a newline.
std::string format_table(const std::vector<std::vector<std::string>>& rows);

// "s0, s1, s2", of more than `most` "s0, s1 and 126 others".
inline std::string shortened_list(std::vector<std::string> names, std::size_t most) {
  if (names.size() <= most) return join(names, ", ");
  const std::size_t others = names.size() - most;
  names.resize(most);
  return join(names, ", ") + " and " + std::to_string(others) +
         (others == 1 ? " other" : " others");
}

// "1 leaf", "2 leaves".
std::string pluralized(std::integral auto count, std::string_view one, std::string_view many) {
  return std::to_string(count) + " " + std::string(count == 1 ? one : many);
}
// "1 server", "2 servers": a noun with a plain plural.
std::string pluralized(std::integral auto count, const std::string& one) {
  return pluralized(count, one, one + "s");
}

// The number that is the whole of `text`; nothing when there is more beside it, or when it does not
// fit the type. Fractions may be "nan" or "inf"; `base` is for whole numbers.
template <typename Number>
std::optional<Number> parse_number(std::string_view text, [[maybe_unused]] int base = 10) {
  Number number{};
  const char* const end = text.data() + text.size();
  std::from_chars_result read{};
  if constexpr (std::is_floating_point_v<Number>)
    read = std::from_chars(text.data(), end, number);
  else
    read = std::from_chars(text.data(), end, number, base);
  if (read.ec != std::errc() || read.ptr != end) return std::nullopt;
  return number;
}

// The names of an enumeration in files and messages, by the value of the enumerator, from 0.
template <std::size_t kCount>
using EnumNames = std::array<const char*, kCount>;

template <typename Enum, std::size_t kCount>
std::string enum_name(const EnumNames<kCount>& names, Enum value) {
  return names[static_cast<std::size_t>(value)];
}

template <typename Enum, std::size_t kCount>
std::optional<Enum> parse_enum(const EnumNames<kCount>& names, std::string_view name) {
  for (std::size_t i = 0; i < kCount; ++i)
    if (name == names[i]) return static_cast<Enum>(i);
  return std::nullopt;
}

// The names that an enumeration accepts, in the order that messages list them.
template <typename E>
using Choices = std::vector<std::pair<std::string, E>>;

// The numbers that a key of a file accepts, both ends included.
struct IntRange {
  long long low = 1;
  long long high = std::numeric_limits<int>::max();
};
struct NumberRange {
  double low = 0;
  double high = std::numeric_limits<double>::max();
};

// Values as bytes in memory and messages, in the byte order of this machine.

template <typename T>
void put(std::byte* at, T value) {
  std::memcpy(at, &value, sizeof value);
}

template <typename T>
T get(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

// Cuts a stream of bytes into lines and holds a bounded part of it. Pure.
// Takes time linear in the bytes, however they were cut. A caller that takes all lines after each
// append() holds at most one line of the maximum length and the bytes that it appended last.
class LineSplitter {
 public:
  // `line_max`: the longest line in bytes, without its newline; by default any.
  explicit LineSplitter(std::size_t line_max = std::string::npos - 1) : line_max_(line_max) {}
  std::size_t line_max() const { return line_max_; }
  // Holds from the next line on.
  void set_line_max(std::size_t line_max) { line_max_ = line_max; }

  void append(std::string_view bytes);

  // The next complete line without its newline; nullopt until more bytes come. A line that is too
  // long comes as pieces of line_max() + 1 bytes, also before its end is there, so that the caller
  // sees what it is; its remainder follows as a line.
  std::optional<std::string> next();
  bool is_too_long(std::string_view line) const { return line.size() > line_max_; }

  // The bytes after the last line that next() gave; empty afterwards.
  std::string take_rest();

 private:
  std::string pending_;
  std::size_t line_max_;
  std::size_t begin_ = 0;     // of the next line
  std::size_t searched_ = 0;  // no newline in [begin_, searched_)
};

}  // namespace regatta
