// cli/internal/search_progress.h: shows on a terminal that a search goes on: one line that changes
// every second. It prints nothing elsewhere.
#pragma once

#include <cstdio>
#include <string>
#include <thread>

#include "regatta/base/core/mutex.h"

namespace regatta::cli {

class SearchProgress {
 public:
  // Shows `title` and the seconds that have passed, once a second from the first second on. `out`
  // must outlive it.
  SearchProgress(std::FILE* out, std::string title);
  // Shows another title from the next second on.
  void set_title(std::string title);
  // Clears the line.
  ~SearchProgress();
  SearchProgress(const SearchProgress&) = delete;
  SearchProgress& operator=(const SearchProgress&) = delete;

 private:
  void show();

  std::FILE* out_;
  Mutex mutex_;
  ConditionVariable ended_;
  std::string title_ REGATTA_GUARDED_BY(mutex_);
  bool is_over_ REGATTA_GUARDED_BY(mutex_) = false;
  std::thread thread_;  // not started where `out` is no terminal
};

}  // namespace regatta::cli
