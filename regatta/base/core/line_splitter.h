// core/line_splitter.h: cuts a stream of bytes into lines and holds a bounded part of it. Pure.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace regatta {

// Takes time linear in the bytes, however they were cut. Whoever takes all lines after each
// append() holds at most one line of the maximum length and what was appended last.
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
