// os/line_reader.h: the lines of a file or a pipe, as they come.
#pragma once

#include <atomic>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>

#include "regatta/base/core/result.h"
#include "regatta/base/os/unique_fd.h"

namespace regatta::os {

class LineReader {
 public:
  // Of no line are more than `most` + 1 letters read, so that one without an end is seen as such.
  // `name` is for errors.
  LineReader(UniqueFd fd, std::string name, std::size_t most)
      : fd_(std::move(fd)), name_(std::move(name)), most_(most) {}

  // Fails where there is no such file, or a folder; the error names it.
  static Result<LineReader> open(const std::string& path, std::size_t most);

  // Waits for the next line; without its end. None behind the last one, and soon once `stop` is
  // set, whatever has come by then.
  Result<std::optional<std::string>> next(const std::atomic<bool>& stop);

 private:
  Result<bool> read_more(const std::atomic<bool>& stop);

  UniqueFd fd_;
  std::string name_;
  std::size_t most_;
  std::string come_;
  std::size_t begin_ = 0;  // of the next line in it
  bool is_over_ = false;
};

}  // namespace regatta::os
