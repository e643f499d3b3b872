// cli/internal/followed_lines.h: the lines of a file or a pipe that another program writes,
// without waiting for them: what is there when it is opened is left out, as by `tail -n 0 -F`.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include <sys/types.h>

#include "regatta/base/core/result.h"
#include "regatta/base/core/text.h"
#include "regatta/base/core/units.h"
#include "regatta/base/os/unique_fd.h"

namespace regatta::cli {

class FollowedLines {
 public:
  // "-": standard input. It leaves out the lines that a file has now; a pipe may get one writer
  // after the other. kInvalidInput for what cannot be followed. A line longer than
  // `line_max` is cut as LineSplitter does.
  static Result<FollowedLines> open(const std::string& path, std::size_t line_max);

  // Calls `visit` for each line that has come, of 64 KiB at most: the rest waits. A file that was
  // replaced or has become shorter is read from its beginning.
  Status read(const std::function<void(std::string_view line)>& visit, Seconds now);

  // For messages.
  const std::string& name() const { return name_; }
  // Whether the file had lines after its heading when it was opened: they are left out.
  bool leaves_out_lines() const { return leaves_out_lines_; }
  // Whether standard input has ended: nothing more can come.
  bool is_over() const { return is_over_; }

 private:
  FollowedLines(std::string path, std::string name, std::size_t line_max)
      : path_(std::move(path)), name_(std::move(name)), lines_(line_max) {}
  Status look_at_file(Seconds now);
  void begin_at(off_t place);

  std::string path_;  // "": standard input
  std::string name_;
  LineSplitter lines_;
  os::UniqueFd fd_;
  bool is_file_ = false;  // a regular one
  bool leaves_out_lines_ = false;
  bool is_partial_ = false;  // the next line is the rest of one that was left out
  bool is_over_ = false;
  Seconds next_look_;
};

}  // namespace regatta::cli
