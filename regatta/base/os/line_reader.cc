#include "regatta/base/os/line_reader.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include "regatta/base/os/errno_text.h"

namespace regatta::os {
namespace {

// A signal that comes just before poll() does not wake it.
constexpr int kLookMs = 100;

}  // namespace

Result<LineReader> LineReader::open(const std::string& path, std::size_t most) {
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return errno_error(path);
  LineReader reader(std::move(fd), path, most);
  // A folder opens and cannot be read.
  if (::read(reader.fd_.get(), nullptr, 0) < 0) return errno_error(path);
  return reader;
}

Result<std::optional<std::string>> LineReader::next(const std::atomic<bool>& stop) {
  for (std::size_t looked = 0; !stop;) {
    const std::size_t found = come_.find('\n', begin_ + looked);
    const std::size_t end = std::min(found, come_.size());
    const bool is_whole = found != std::string::npos;
    if (is_whole || end - begin_ > most_ || (is_over_ && end > begin_)) {
      std::string line = come_.substr(begin_, std::min(end - begin_, most_ + 1));
      begin_ = is_whole ? end + 1 : begin_ + line.size();
      return std::optional(std::move(line));
    }
    if (is_over_) break;
    looked = end - begin_;
    REGATTA_TRY(has_more, read_more(stop));
    is_over_ = !has_more;
  }
  return std::optional<std::string>();
}

// False at the end, and where nothing came before `stop` was set.
Result<bool> LineReader::read_more(const std::atomic<bool>& stop) {
  come_.erase(0, std::exchange(begin_, 0));
  char part[65'536];
  while (!stop) {
    pollfd wait{.fd = fd_.get(), .events = POLLIN, .revents = 0};
    if (::poll(&wait, 1, kLookMs) <= 0) continue;
    const ssize_t count = ::read(fd_.get(), part, sizeof part);
    if (count < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (count < 0) return errno_error(name_);
    come_.append(part, static_cast<std::size_t>(count));
    return count > 0;
  }
  return false;
}

}  // namespace regatta::os
