#include "regatta/app/cli/internal/heal_output.h"

#include <algorithm>
#include <cerrno>
#include <climits>
#include <utility>

#include <fcntl.h>
#include <fmt/core.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include "regatta/app/cli/internal/hang_watch.h"
#include "regatta/base/core/units.h"
#include "regatta/base/os/clock.h"

namespace regatta::cli {
namespace {

// The flag O_NONBLOCK on a terminal or pipe that others have too would be theirs as well. Nothing
// where it cannot be opened.
os::UniqueFd open_again(int fd) {
  struct stat file {};
  if (::fstat(fd, &file) != 0 || !(S_ISFIFO(file.st_mode) || ::isatty(fd) == 1)) return {};
  return os::UniqueFd(::open(fmt::format("/proc/self/fd/{}", fd).c_str(),
                             O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
}

}  // namespace

OutputQueue::OutputQueue(int fd, std::size_t size_max)
    : fd_(fd), own_(open_again(fd)), size_max_(size_max) {}

OutputQueue::~OutputQueue() {
  const Seconds until = os::monotonic_now() + kLongestPause;
  for (flush(); !lines_.empty(); flush()) {
    const double left = (until - os::monotonic_now()).value;
    if (left <= 0 || !is_writable(static_cast<int>(left * 1e3) + 1)) return;
  }
}

void OutputQueue::push(std::string line) {
  if (line.empty()) return;
  if (dropped_ > 0 || size_ + line.size() > size_max_) {
    ++dropped_;
    return;
  }
  size_ += line.size();
  lines_.push_back(std::move(line));
}

// A file without a reader counts as writable: the write then ends the process, as it should.
bool OutputQueue::is_writable(int wait_ms) const {
  pollfd wait{out(), POLLOUT, 0};
  return ::poll(&wait, 1, wait_ms) > 0;
}

// At most PIPE_BUF bytes at a time, for which a pipe that is writable has room.
void OutputQueue::flush() {
  while (!lines_.empty() && is_writable(0)) {
    const std::string& line = lines_.front();
    const std::size_t size = std::min<std::size_t>(line.size() - written_, PIPE_BUF);
    const ssize_t count = ::write(out(), line.data() + written_, size);
    if (count < 0 && (errno == EAGAIN || errno == EINTR)) return;
    // A line that cannot be written at all is lost, as on a full disk.
    written_ = count < 0 ? line.size() : written_ + static_cast<std::size_t>(count);
    if (written_ < line.size()) continue;
    size_ -= line.size();
    written_ = 0;
    lines_.pop_front();
  }
}

std::size_t OutputQueue::consume_dropped() {
  return lines_.empty() ? std::exchange(dropped_, 0) : 0;
}

}  // namespace regatta::cli
