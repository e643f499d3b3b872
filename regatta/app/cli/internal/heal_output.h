// cli/internal/heal_output.h: lines for standard output that wait for its reader, so that the
// process that prints them does not.
#pragma once

#include <cstddef>
#include <deque>
#include <string>

#include "regatta/base/os/unique_fd.h"

namespace regatta::cli {

class OutputQueue {
 public:
  // `fd` must outlive this. Holds at most `size_max` bytes of lines.
  OutputQueue(int fd, std::size_t size_max);
  OutputQueue(const OutputQueue&) = delete;
  OutputQueue& operator=(const OutputQueue&) = delete;
  // Waits for a reader once more, at most kLongestPause.
  ~OutputQueue();

  // Drops the line where it has no room, and the further ones until all before are written.
  void push(std::string line);
  // Writes what can be written now.
  void flush();
  // How many lines were dropped, once the lines before them are written; else 0. Counts anew.
  std::size_t consume_dropped();

  // Becomes writable when flush() has something to do; -1: nothing waits.
  int fd() const { return lines_.empty() ? -1 : out(); }

 private:
  int out() const { return own_ ? own_.get() : fd_; }
  bool is_writable(int wait_ms) const;

  int fd_;
  os::UniqueFd own_;  // the same file, opened again so that a write never waits
  std::size_t size_max_;
  std::size_t size_ = 0;  // of all lines
  std::deque<std::string> lines_;
  std::size_t written_ = 0;  // of the first line
  std::size_t dropped_ = 0;
};

}  // namespace regatta::cli
