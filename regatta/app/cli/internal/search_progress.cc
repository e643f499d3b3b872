#include "regatta/app/cli/internal/search_progress.h"

#include <utility>

#include <fmt/core.h>
#include <unistd.h>

namespace regatta::cli {

SearchProgress::SearchProgress(std::FILE* out, std::string title)
    : out_(out), title_(std::move(title)) {
  if (::isatty(::fileno(out)) == 1) thread_ = std::thread([this] { show(); });
}

void SearchProgress::set_title(std::string title) {
  const MutexLock lock(mutex_);
  title_ = std::move(title);
}

SearchProgress::~SearchProgress() {
  if (!thread_.joinable()) return;
  {
    const MutexLock lock(mutex_);
    is_over_ = true;
  }
  ended_.notify_one();
  thread_.join();
}

void SearchProgress::show() {
  MutexLock lock(mutex_);
  int seconds = 0;
  while (
      !ended_.wait_for(lock, Seconds{1}, [this]() REGATTA_REQUIRES(mutex_) { return is_over_; })) {
    fmt::print(out_, "\r\x1b[K{}, {} s", title_, ++seconds);
    std::fflush(out_);
  }
  if (seconds == 0) return;
  std::fputs("\r\x1b[K", out_);
  std::fflush(out_);
}

}  // namespace regatta::cli
