#include <cerrno>
#include <string_view>
#include <utility>

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include "regatta/base/os/socket.h"
#include "regatta/base/os/unique_fd.h"

namespace regatta::os {
namespace {

// A signal that comes just before poll() does not wake it.
constexpr int kLookMs = 100;

}  // namespace

Result<LineReader> LineReader::open(const std::string& path, std::size_t line_max) {
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return errno_error(path);
  LineReader reader(std::move(fd), path, line_max);
  // A folder opens and cannot be read.
  if (::read(reader.fd_.get(), nullptr, 0) < 0) return errno_error(path);
  return reader;
}

Result<std::optional<std::string>> LineReader::next(const std::atomic<bool>& stop) {
  while (!stop) {
    if (auto line = lines_.next()) return line;
    if (is_over_) {
      std::string rest = lines_.take_rest();
      if (!rest.empty()) return std::optional(std::move(rest));
      break;
    }
    REGATTA_TRY(has_more, read_more(stop));
    is_over_ = !has_more && !stop;
  }
  return std::optional<std::string>();
}

// False at the end, and where nothing came before `stop` was set.
Result<bool> LineReader::read_more(const std::atomic<bool>& stop) {
  char part[65'536];
  while (!stop) {
    pollfd wait{.fd = fd_.get(), .events = POLLIN, .revents = 0};
    if (::poll(&wait, 1, kLookMs) <= 0) continue;
    const ssize_t count = ::read(fd_.get(), part, sizeof part);
    if (count < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (count < 0) return errno_error(name_);
    lines_.append(std::string_view(part, static_cast<std::size_t>(count)));
    return count > 0;
  }
  return false;
}

}  // namespace regatta::os
