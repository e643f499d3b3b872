// cli/internal/search_progress.h: that a search goes on, for people who wait: a line that changes
// on a terminal, nothing elsewhere.
#pragma once

#include <condition_variable>
#include <cstdio>
#include <mutex>
#include <string>
#include <thread>

namespace regatta::cli {

class SearchProgress {
 public:
  // Shows `title` and the seconds that have passed, once a second from the first second on. `out`
  // must outlive it.
  SearchProgress(std::FILE* out, std::string title);
  // Another title, from the next second on.
  void set_title(std::string title);
  // Clears the line.
  ~SearchProgress();
  SearchProgress(const SearchProgress&) = delete;
  SearchProgress& operator=(const SearchProgress&) = delete;

 private:
  void show();

  std::FILE* out_;
  std::mutex mutex_;
  std::string title_;  // under mutex_
  std::condition_variable ended_;
  bool is_over_ = false;  // the same
  std::thread thread_;    // none where `out` is no terminal
};

}  // namespace regatta::cli
