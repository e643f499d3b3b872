// os/line_reader.h: the lines of a file or a pipe, as they come.
#pragma once

#include <atomic>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>

#include "regatta/base/core/line_splitter.h"
#include "regatta/base/core/result.h"
#include "regatta/base/os/unique_fd.h"

namespace regatta::os {

class LineReader {
 public:
  // A line longer than `line_max` comes in pieces of one byte more, as LineSplitter gives it.
  // `name` is for errors.
  LineReader(UniqueFd fd, std::string name, std::size_t line_max)
      : fd_(std::move(fd)), name_(std::move(name)), lines_(line_max) {}

  // Fails where there is no such file, or a folder; the error names it.
  static Result<LineReader> open(const std::string& path, std::size_t line_max);

  // Waits for the next line; without its end. None behind the last one, and soon once `stop` is
  // set, whatever has come by then.
  Result<std::optional<std::string>> next(const std::atomic<bool>& stop);

 private:
  Result<bool> read_more(const std::atomic<bool>& stop);

  UniqueFd fd_;
  std::string name_;
  LineSplitter lines_;
  bool is_over_ = false;
};

}  // namespace regatta::os
