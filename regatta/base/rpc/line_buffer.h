// rpc/line_buffer.h: cuts a stream of bytes into lines.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace regatta::rpc {

// Bytes go in as they come, lines come out whole; linear in the bytes, however they were cut.
class LineBuffer {
 public:
  void append(std::string_view bytes) { pending_.append(bytes); }

  // The next complete line without its newline; nullopt until more bytes come.
  std::optional<std::string> next() {
    const auto end = pending_.find('\n', searched_);
    if (end == std::string::npos) {
      pending_.erase(0, start_);
      start_ = 0;
      searched_ = pending_.size();
      return std::nullopt;
    }
    std::string line = pending_.substr(start_, end - start_);
    start_ = searched_ = end + 1;
    return line;
  }

  // What came after the last newline: the unfinished last words of a process that died.
  std::string rest() const { return pending_.substr(start_); }

 private:
  std::string pending_;
  std::size_t start_ = 0;     // of the next line
  std::size_t searched_ = 0;  // no newline in [start_, searched_)
};

}  // namespace regatta::rpc
